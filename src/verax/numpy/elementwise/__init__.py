"""Floor 6: functions of each element, with NumPy's promotion and broadcasting.

Operands are promoted and broadcast, and then it is one operation of
`verax.ops.elementwise`.
"""
