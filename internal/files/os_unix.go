//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// withoutWaiting makes opening a pipe return at once, and a terminal not that of
// the process.
const withoutWaiting = syscall.O_NONBLOCK | syscall.O_NOCTTY

var openFile = os.OpenFile

// lock locks an open file against every other opening of it, until it is closed
// or the process ends.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// adopt gives a file the mode of an old one, and its owner and group as far as
// that is permitted.
func adopt(f *os.File, old fs.FileInfo) error {
	mode := old.Mode().Perm()
	if s, ok := old.Sys().(*syscall.Stat_t); ok {
		if f.Chown(-1, int(s.Gid)) != nil {
			// What the old group was allowed is not for another one.
			mode = mode&^0o070 | mode&0o007<<3
		}
		_ = f.Chown(int(s.Uid), -1) // for the superuser alone
	}
	return f.Chmod(mode)
}

// checkOwner reports an error for a folder that others may write in.
func checkOwner(info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return errOthers(fmt.Sprintf("belongs to user %d", s.Uid))
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errOthers("others may write in")
	}
	return nil
}

func rename(f *os.File, path string) error {
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The new name reaches the disk, too, where a folder can be written back.
	if dir, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY|withoutWaiting, 0); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
	return nil
}
