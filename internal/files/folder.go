package files

import (
	"errors"
	"fmt"
	"os"
)

// OwnFolder makes a folder whose contents nobody but the user, and root, decides: one that is
// there must be a folder and no link to one, belong to them, and let nobody else write.
func OwnFolder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return Name(path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return Name(path, err)
	}
	if !info.IsDir() {
		return Name(path, errors.New("a link to a folder, which somebody else may turn elsewhere"))
	}
	return Name(path, checkOwner(info))
}

// errOthers says who else decides about a folder.
func errOthers(what string) error {
	return fmt.Errorf("a folder that %s: files in it could be another user's", what)
}
