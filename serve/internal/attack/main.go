//go:build unix

// The command attack starts bcnn serve with a budget of memory, attacks it over many connections
// in every way that has ever felled it, and asks it as a client of another address does who means
// well. It prints a table of the memory of the server and of the answers to that client, and fails
// if the memory or the answers are not what docs/serving.md promises.
//
//	go run ./serve/internal/attack --bcnn bin/bcnn --for 10m
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bitcnn/bitcnn/internal/files"
)

func main() {
	command := flag.String("bcnn", "bin/bcnn", "the command")
	duration := flag.Duration("for", 10*time.Minute, "how long")
	connections := flag.Int("connections", 64, "attackers, each with a connection of its own or more")
	memory := flag.Int("memory", 512, "budget of the server in MiB")
	only := flag.String("only", "", "one attack")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *command, *duration, *connections, *memory, *only); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string, duration time.Duration, connections, memory int, only string) error {
	s, err := start(ctx, command, memory)
	if err != nil {
		return err
	}
	defer s.kill()
	list, err := attacks(s)
	if err != nil {
		return err
	}
	if only != "" {
		list = slices.DeleteFunc(list, func(a attack) bool { return a.name != only })
	}
	if len(list) == 0 {
		return fmt.Errorf("there is no attack %q", only)
	}
	good := &client{server: s}
	for range 20 { // what the process is before
		if err := good.ask(ctx); err != nil {
			return fmt.Errorf("before all attacks: %w", err)
		}
	}
	base, err := s.resident()
	if err != nil {
		return err
	}
	good.took = nil

	under, end := context.WithCancel(ctx)
	defer end()
	over := time.After(duration)
	var all sync.WaitGroup
	for i := range connections {
		a := list[i%len(list)]
		all.Go(func() { a.repeat(under) })
	}
	all.Go(func() { good.repeat(under) })
	peak, err := watch(over, s, good, base)
	if err != nil {
		end()
		all.Wait()
		return err
	}
	good.stop()
	ended, err := s.terminate() // under attack
	end()
	all.Wait()
	if err != nil {
		return err
	}
	for _, a := range list {
		fmt.Printf("%-16s %s\n", a.name, a.outcomes)
	}
	took, within := good.summary()
	fmt.Printf("memory: %d MiB before, %d MiB at the most, %d allowed\n", base>>20, peak>>20, base>>20+int64(memory)+100)
	fmt.Printf("good client: %d answers, %.1f %% within a second, median %v, p99 %v\n", len(took), within,
		quantile(took, .5), quantile(took, .99))
	fmt.Printf("SIGTERM: ended after %v\n", ended.Round(time.Millisecond))
	switch {
	case peak > base+int64(memory+100)<<20:
		return fmt.Errorf("the server took %d MiB", peak>>20)
	case within < 95:
		return fmt.Errorf("%.1f %% of the good client's answers came within a second, want 95", within)
	case ended > drain+2*time.Second: // it shares the processor with its attackers
		return fmt.Errorf("it ended %v after SIGTERM", ended)
	}
	return nil
}

// watch prints a line every ten seconds, and returns the largest resident memory.
func watch(over <-chan time.Time, s *server, good *client, base int64) (peak int64, err error) {
	fmt.Printf("%8s %10s %10s %8s %10s %8s\n", "seconds", "RSS, MiB", "peak, MiB", "answers", "within 1 s", "p99")
	began, printed := time.Now(), time.Now()
	line := func(now int64) {
		took, within := good.summary()
		fmt.Printf("%8.0f %10d %10d %8d %8.1f %% %8v\n", time.Since(began).Seconds(), now>>20, peak>>20, len(took), within,
			quantile(took, .99))
	}
	peak = base
	for {
		now, err := s.resident()
		if err != nil {
			return peak, fmt.Errorf("the server has ended: %w\n%s", err, s.log.tail())
		}
		peak = max(peak, now)
		select {
		case <-over:
			line(now)
			return peak, nil
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(printed) >= 10*time.Second {
			printed = time.Now()
			line(now)
		}
	}
}

func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return took[int(q*float64(len(took)-1))].Round(time.Millisecond)
}

// server is bcnn serve.
type server struct {
	cmd        *exec.Cmd
	http, grpc string
	log        *output
	done       chan error
}

// output keeps what a server has logged, and tells of its addresses.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() < 1<<20 {
		o.text.WriteString(line + "\n")
	}
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.text.Bytes()
	return string(b[max(0, len(b)-4000):])
}

func start(ctx context.Context, command string, memory int) (*server, error) {
	s := &server{log: &output{}, done: make(chan error, 1)}
	s.cmd = exec.CommandContext(ctx, command, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--timeout", "10s",
		"--drain", drain.String(), "--memory", fmt.Sprintf("%dMiB", memory))
	logged, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	listening := regexp.MustCompile(`msg=listening protocol=(http|grpc) address=(\S+)`)
	addresses := make(chan [2]string, 2)
	go func() {
		for lines := bufio.NewScanner(logged); lines.Scan(); {
			s.log.add(lines.Text())
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				addresses <- [2]string{m[1], m[2]}
			}
		}
		s.done <- s.cmd.Wait()
	}()
	for range 2 {
		select {
		case a := <-addresses:
			if a[0] == "http" {
				s.http = a[1]
			} else {
				s.grpc = a[1]
			}
		case err := <-s.done:
			return nil, fmt.Errorf("the server does not start: %v\n%s", err, s.log.tail())
		}
	}
	return s, nil
}

// resident is the resident memory of the process in bytes.
func (s *server) resident() (int64, error) {
	b, err := files.ReadAll(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), 1<<16)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no memory", s.cmd.Process.Pid)
}

// drain is how long requests in progress are waited for.
const drain = 5 * time.Second

// terminate returns how long the server takes to end. Where it has given somebody up it ends as the
// signal does.
func (s *server) terminate() (time.Duration, error) {
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	err := <-s.done
	s.done <- err
	how, _ := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && how.Signal() != syscall.SIGTERM {
		return 0, fmt.Errorf("the end of the server: %w\n%s", err, s.log.tail())
	}
	return time.Since(began), nil
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}
