package plan

import "github.com/bitcnn/bitcnn/bcnn/bits"

// GroupsOfBlocks returns how many groups of a convolution on bytes, of so many outputs each, have
// outputs for whole blocks of bits.WordBits, which kernels compute at a time: 1; 2 with weights of
// 0 for the inputs of the other one, which weights of ±1 cannot have; or 0 if there are too few.
func GroupsOfBlocks(groups, outputs int, signs bool) int {
	switch {
	case groups == 1 || outputs%bits.WordBits == 0:
		return 1
	case !signs && groups%2 == 0 && (2*outputs%bits.WordBits == 0 || groups == 2):
		return 2
	}
	return 0
}
