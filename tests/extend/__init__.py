"""Extensions as their authors write them: rows, tables, and the worked examples."""
