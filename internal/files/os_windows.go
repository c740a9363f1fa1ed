package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

const withoutWaiting = 0

// openFile is that of package os for files that others may replace or remove while they are
// open here, which os.Root lets them and os.OpenFile does not. The root is the folder, so a link
// that leads elsewhere is opened without.
func openFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	if root, err := os.OpenRoot(filepath.Dir(path)); err == nil {
		defer root.Close()
		if f, err := root.OpenFile(filepath.Base(path), flag, mode); err == nil || flag&os.O_CREATE != 0 {
			return f, err
		}
	}
	return os.OpenFile(path, flag, mode)
}

// lock locks an open file against every other opening of it, until it is closed or the process
// ends. The byte that it locks is beyond all that files have.
func lock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errLocked
	}
	return err
}

// adopt makes a file read-only where an old one is. Who may do what is the folder's to say.
func adopt(f *os.File, old fs.FileInfo) error { return f.Chmod(old.Mode().Perm()) }

// checkOwner knows no owners.
func checkOwner(fs.FileInfo) error { return nil }

// patience is how long a file is waited for that another program has open in a way that lets
// nobody replace it, as those do that look for viruses or make an index.
const patience = time.Second

// rename gives an open file its name, also where others read the file that had it, as long as
// they let others replace it.
func rename(f *os.File, path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := root.Rename(filepath.Base(f.Name()), filepath.Base(path))
		waits := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !waits || time.Since(start) > patience {
			return err
		}
	}
}
