//go:build js && wasm

// Command engine is what the page has in place of a server: the bundled models, in
// WebAssembly. Its functions are those of the object "engine" of the worker that runs it; see
// worker.js.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"syscall/js"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/vision"
)

// names are the models of the page.
var names = []string{"digits", "vehiclenet"}

func main() {
	e := &engine{open: map[string]*opened{}}
	js.Global().Set("engine", js.ValueOf(map[string]any{
		"version":  function(func([]js.Value) (any, error) { return bitcnn.Version(), nil }),
		"models":   function(func([]js.Value) (any, error) { return e.models() }),
		"classify": function(e.classify),
		"profile":  function(e.profile),
	}))
	js.Global().Call("engineReady")
	select {}
}

// function makes a function of JavaScript: its last two arguments take the answer, or the
// error.
func function(f func(args []js.Value) (any, error)) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		args, resolve, reject := args[:len(args)-2], args[len(args)-2], args[len(args)-1]
		go func() {
			answer, err := f(args)
			var text []byte
			if err == nil {
				text, err = json.Marshal(answer)
			}
			if err != nil {
				reject.Invoke(err.Error())
				return
			}
			resolve.Invoke(string(text))
		}()
		return nil
	})
}

// engine opens models when they are asked for first.
type engine struct {
	mu   sync.Mutex
	open map[string]*opened
}

type opened struct {
	session    *bitcnn.Session
	classifier *vision.Classifier
}

func (e *engine) model(name string) (*opened, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o := e.open[name]; o != nil {
		return o, nil
	}
	net, err := bitcnn.Bundled(name)
	if err != nil {
		return nil, err
	}
	s, err := bitcnn.Open(context.Background(), net, bitcnn.Options{})
	if err != nil {
		return nil, err
	}
	c, err := vision.NewClassifier(s, vision.Options{})
	if err != nil {
		s.Close()
		return nil, err
	}
	e.open[name] = &opened{s, c}
	return e.open[name], nil
}

func (e *engine) models() (any, error) {
	var list []picture.Model
	for _, name := range names {
		o, err := e.model(name)
		if err != nil {
			return nil, err
		}
		list = append(list, picture.Model{
			Name: name, Device: o.session.Device().ID + " (WebAssembly)", Labels: o.classifier.Labels(),
			Inputs: describe(o.session.Inputs()), Outputs: describe(o.session.Outputs()), Input: picture.SizeOf(o.classifier),
		})
	}
	return list, nil
}

func describe(list []bitcnn.IO) []string {
	var words []string
	for _, io := range list {
		words = append(words, fmt.Sprintf("%v %v", io.DType, io.Shape))
	}
	return words
}

// arguments are the name of a model and an image.
func (e *engine) arguments(args []js.Value) (name string, o *opened, image *picture.Image, err error) {
	name = args[0].String()
	if o, err = e.model(name); err != nil {
		return name, nil, nil, err
	}
	data := make([]byte, args[1].Length())
	js.CopyBytesToGo(data, args[1])
	image, err = picture.Decode(context.Background(), o.classifier.Preprocessing(), data)
	return name, o, image, err
}

func (e *engine) classify(args []js.Value) (any, error) {
	name, o, image, err := e.arguments(args)
	if err != nil {
		return nil, err
	}
	return picture.Classify(context.Background(), name, o.session, o.classifier, image, picture.Options{Top: 10,
		Seen: true})
}

func (e *engine) profile(args []js.Value) (any, error) {
	name, o, image, err := e.arguments(args)
	if err != nil {
		return nil, err
	}
	return picture.Measure(context.Background(), name, o.session, image)
}
