// Package steps counts what code executes, for tests of its cost: a time that
// does not depend on the machine. The code itself knows nothing of it. A test
// runs itself again on copies of packages that the command instrument has made,
// which count every entry into a function and every iteration of a loop:
//
//	go run ./internal/steps/instrument -o DIR ./bcnn/onnx/...
//	go test -overlay DIR/overlay.json ./bcnn/onnx
package steps

// N is how many functions were entered and iterations begun. It stays 0 where
// nothing is instrumented. Code that runs in several goroutines at once counts
// too little.
var N int64
