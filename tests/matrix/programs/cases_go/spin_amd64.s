#include "textflag.h"

// func spin()
TEXT ·spin(SB), NOSPLIT, $0-0
	NOP
loop:
	JMP loop
