//go:build !windows

package files

import "syscall"

// What the system says of a file that is taken for a folder, and of a name that is too long.
const notFolder, tooLongName = syscall.ENOTDIR, syscall.ENAMETOOLONG
