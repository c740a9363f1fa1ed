//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// Where this variable is set, the test binary is a process that replaces files:
// one of a path in each line of its input.
const childVariable = "FILES_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		err := Replace(input.Text(), func(w io.Writer) error {
			if _, err := io.WriteString(w, "child"); err != nil {
				return err
			}
			fmt.Println("writing")
			input.Scan() // waits until it may go on
			return nil
		})
		fmt.Println("replaced:", err)
	}
}

// child is the test binary as another process.
type child struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startChild(t *testing.T, attributes *syscall.SysProcAttr) *child {
	executable, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = attributes
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	requireStarted(t, cmd.Start())
	c := &child{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return c
}

// requireStarted ends a test whose other process does not start: skipped where an
// emulator runs the test, of which the kernel does not know.
func requireStarted(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, syscall.ENOEXEC) {
		testenv.Absent(t, "child-processes", err)
	}
	require.NoError(t, err)
}

// say sends a line and returns the answer.
func (c *child) say(t *testing.T, line string) string {
	_, err := fmt.Fprintln(c.in, line)
	require.NoError(t, err)
	require.True(t, c.out.Scan())
	return c.out.Text()
}

// A pipe is opened by none, whether or not it was a file a moment before.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "file"), "content")
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer listener.Close()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("/dev/zero", link))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for _, path := range []string{pipe, filepath.Join(dir, "s"), "/dev/null", "/dev/zero", link} {
		_, err := Open(path)
		once(t, err, path, "not a regular file")
		require.ErrorIs(t, err, ErrNotRegular)
		_, err = ReadAll(path, 1<<20)
		require.ErrorIs(t, err, ErrNotRegular)
		if path != link {
			once(t, Replace(path, nil), path, "not a regular file")
		}
		_, err = open(path, func(string) (fs.FileInfo, error) { return os.Stat(file) }, os.OpenFile)
		if path == filepath.Join(dir, "s") {
			require.ErrorIs(t, err, syscall.ENXIO)
		} else {
			require.Equal(t, ErrNotRegular, err)
		}
	}
	_, err = OpenIn(root, "pipe")
	once(t, err, "pipe", "not a regular file")
	_, _, err = OpenFS(os.DirFS(dir), "pipe")
	once(t, err, "pipe", "not a regular file")
	_, err = open("pipe", func(string) (fs.FileInfo, error) { return os.Stat(file) }, root.OpenFile)
	require.Equal(t, ErrNotRegular, err)
	_, err = open(dir, func(string) (fs.FileInfo, error) { return os.Stat(file) }, os.OpenFile)
	require.Equal(t, syscall.EISDIR, err)
	// A pipe as the folder of a file keeps nobody waiting either.
	once(t, Replace(filepath.Join(pipe, "x"), nil), filepath.Join(pipe, "x"), "not a directory")
}

// A link is replaced, what it points to stays as it is.
func TestReplaceLink(t *testing.T) {
	dir := t.TempDir()
	victim := write(t, filepath.Join(dir, "victim"), "content")
	require.NoError(t, os.Chmod(victim, 0o600))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(victim, link))
	require.NoError(t, Replace(link, func(io.Writer) error { return nil }))
	data, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "content", string(data))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	require.NotEqual(t, fs.FileMode(0o600), info.Mode().Perm())
}

func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			dir := t.TempDir()
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			fresh := filepath.Join(dir, "new")
			require.NoError(t, Replace(fresh, func(io.Writer) error { return nil }))
			require.Equal(t, 0o666&^fs.FileMode(umask), mode(t, fresh))

			for _, m := range []fs.FileMode{0o600, 0o644, 0o640, 0o444, 0o777} {
				path := write(t, filepath.Join(dir, fmt.Sprint(m)), "secret")
				require.NoError(t, os.Chmod(path, m))
				require.NoError(t, Replace(path, func(w io.Writer) error {
					// Nobody else reads it before it is there.
					require.Equal(t, fs.FileMode(0o600), mode(t, w.(bareWriter).f.Name()))
					return nil
				}))
				require.Equal(t, m, mode(t, path))
			}
		})
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

func owner(t *testing.T, path string) (uid, gid int) {
	info, err := os.Lstat(path)
	require.NoError(t, err)
	s := info.Sys().(*syscall.Stat_t)
	return int(s.Uid), int(s.Gid)
}

// The superuser keeps the owner of a file. Anyone else becomes the owner, and
// the rights of a group that cannot be kept go to no other.
func TestOwner(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Absent(t, "superuser", errors.New("nobody else can give files away"))
	}
	dir := t.TempDir()
	// The child goes down the whole path.
	for d := dir; d != filepath.Dir(d) && strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o777))
	}
	path := write(t, filepath.Join(dir, "a"), "secret")
	require.NoError(t, os.Chown(path, 1234, 2345))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, Replace(path, func(io.Writer) error { return nil }))
	uid, gid := owner(t, path)
	require.Equal(t, []int{1234, 2345}, []int{uid, gid})
	require.Equal(t, fs.FileMode(0o640), mode(t, path))

	// The test binary is where the child may not reach it: a copy is not.
	executable, err := os.Executable()
	require.NoError(t, err)
	content, err := os.ReadFile(executable)
	require.NoError(t, err)
	binary := filepath.Join(dir, "child")
	require.NoError(t, os.WriteFile(binary, content, 0o755))
	cmd := exec.Command(binary)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stdin = strings.NewReader("a\n\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4321, Gid: 5432}}
	out, err := cmd.Output()
	requireStarted(t, err)
	require.Equal(t, "writing\nreplaced: <nil>\n", string(out))
	uid, gid = owner(t, path)
	require.Equal(t, []int{4321, 5432}, []int{uid, gid})
	require.Equal(t, fs.FileMode(0o600), mode(t, path))
	require.Equal(t, []string{"a", "child"}, list(t, dir))
}

// What a killed process has left goes when the next file of the folder is
// replaced; what a living one is writing stays.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b"), "old")
	for range 2 {
		killed := startChild(t, nil)
		require.Equal(t, "writing", killed.say(t, filepath.Join(dir, "a")))
		require.NoError(t, killed.cmd.Process.Signal(syscall.SIGKILL))
		killed.cmd.Wait()
	}
	// Both: the second has found the first one's, and taken it away.
	left := list(t, dir)
	require.Len(t, left, 2)
	require.Regexp(t, temporary, left[0])
	require.Equal(t, "b", left[1])

	living := startChild(t, nil)
	require.Equal(t, "writing", living.say(t, filepath.Join(dir, "c")))
	theirs := list(t, dir)
	require.Len(t, theirs, 2)
	require.NotEqual(t, left[0], theirs[0])
	require.NoError(t, Replace(filepath.Join(dir, "b"), func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return err
	}))
	require.Equal(t, theirs, list(t, dir))
	require.Equal(t, "replaced: <nil>", living.say(t, ""))
	require.Equal(t, []string{"b", "c"}, list(t, dir))
}

// Only temporary files of this package are swept.
func TestSweepSparesOthers(t *testing.T) {
	dir := t.TempDir()
	spared := []string{".bcnn-0123456789abcdef.tmp~", ".bcnn-0123456789ABCDEF.tmp", "x.bcnn-0123456789abcdef.tmp", ".a.bcnn.123", ".bcnn-01.tmp"}
	for _, name := range spared {
		write(t, filepath.Join(dir, name), "")
	}
	require.NoError(t, os.Symlink(spared[0], filepath.Join(dir, ".bcnn-0000000000000001.tmp")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".bcnn-0000000000000002.tmp"), 0o755))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, ".bcnn-0000000000000003.tmp"), 0o600))
	before := list(t, dir)
	write(t, filepath.Join(dir, ".bcnn-0000000000000004.tmp"), "")
	sweep(dir)
	require.Equal(t, before, list(t, dir))
}

// A file whose temporary one has been swept before it was locked is begun anew.
func TestLostBeforeTheLock(t *testing.T) {
	dir := t.TempDir()
	f, err := create(dir, 0o600)
	require.NoError(t, err)
	defer f.Close()
	require.True(t, inPlace(f))
	again, err := os.Open(f.Name())
	require.NoError(t, err)
	defer again.Close()
	require.Equal(t, errLocked, lock(again))
	require.NoError(t, os.Remove(f.Name()))
	require.False(t, inPlace(f))
	write(t, f.Name(), "another one")
	require.False(t, inPlace(f))
	require.Equal(t, errLocked, lock(again))
}
