"""Floor 0: the text of a program and its words, and a program as HTML and as a picture.

What is printed with types can be read back; `forms` has the parser.
"""
