//go:build !purego

#include "textflag.h"

// func get() word
TEXT ·get(SB), NOSPLIT, $0-8
	MRS  FPCR, R0
	MOVD R0, ret+0(FP)
	RET

// func set(m word)
TEXT ·set(SB), NOSPLIT, $0-8
	MOVD m+0(FP), R0
	MSR  R0, FPCR
	RET
