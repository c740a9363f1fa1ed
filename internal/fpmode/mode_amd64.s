//go:build !purego

#include "textflag.h"

// func get() word
TEXT ·get(SB), NOSPLIT, $0-4
	STMXCSR ret+0(FP)
	RET

// func set(m word)
TEXT ·set(SB), NOSPLIT, $0-4
	LDMXCSR m+0(FP)
	RET
