//go:build js && wasm

// Command engine is what the page has in place of a server: the bundled models and those that the
// page loads, in WebAssembly. Its functions are those of the object "engine" of the worker that runs
// it; see worker.js.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall/js"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/serve/internal/picture"
	"github.com/bitcnn/bitcnn/vision"
)

func main() {
	e := &engine{names: []string{"digits", "vehiclenet"}, open: map[string]*opened{}}
	js.Global().Set("engine", js.ValueOf(map[string]any{
		"version":  function(func([]js.Value) (any, error) { return bitcnn.Version(), nil }),
		"add":      function(e.add),
		"models":   function(func([]js.Value) (any, error) { return e.models() }),
		"classify": function(e.classify),
		"detect":   function(e.detect),
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

// engine opens models: those that are bundled when they are asked for first.
type engine struct {
	mu    sync.Mutex
	names []string // of the models of the page, in its order
	open  map[string]*opened
}

// opened has a classifier, or a detector.
type opened struct {
	session    *bitcnn.Session
	classifier *vision.Classifier
	detector   *vision.Detector
}

func open(net *bitcnn.Model) (o *opened, err error) {
	s, err := bitcnn.Open(context.Background(), net, bitcnn.Options{})
	if err != nil {
		return nil, err
	}
	o = &opened{session: s}
	if s.Detection() != nil {
		o.detector, err = vision.NewDetector(s, vision.DetectorOptions{Top: mostBoxes})
	} else {
		o.classifier, err = vision.NewClassifier(s, vision.Options{})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return o, nil
}

// mostBoxes is how many boxes the page shows.
const mostBoxes = 100

func (o *opened) preprocessing() vision.Preprocessing {
	if o.detector != nil {
		return o.detector.Preprocessing()
	}
	return o.classifier.Preprocessing()
}

// add takes the name of a model file and its bytes: a model of the page.
func (e *engine) add(args []js.Value) (any, error) {
	file := args[0].String()
	net, err := bitcnn.Read(context.Background(), bytes.NewReader(bytesOf(args[1])), bitcnn.LoadOptions{})
	if err != nil {
		return nil, files.Name(file, err)
	}
	o, err := open(net)
	if err != nil {
		return nil, files.Name(file, err)
	}
	name := strings.TrimSuffix(file, ".bcnn")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names, e.open[name] = append(e.names, name), o
	return nil, nil
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
	o, err := open(net)
	if err != nil {
		return nil, err
	}
	e.open[name] = o
	return o, nil
}

func (e *engine) models() (any, error) {
	var list []picture.Model
	for _, name := range e.names {
		o, err := e.model(name)
		if err != nil {
			return nil, err
		}
		m := picture.Model{
			Name: name, Device: o.session.Device().ID + " (WebAssembly)", Inputs: describe(o.session.Inputs()),
			Outputs: describe(o.session.Outputs()), Input: picture.SizeOf(o.preprocessing()), Detects: o.detector != nil,
		}
		if m.Detects {
			m.Labels = o.detector.Labels()
		} else {
			m.Labels = o.classifier.Labels()
		}
		list = append(list, m)
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
	image, err = picture.Decode(context.Background(), o.preprocessing(), bytesOf(args[1]))
	return name, o, image, err
}

func bytesOf(array js.Value) []byte {
	data := make([]byte, array.Length())
	js.CopyBytesToGo(data, array)
	return data
}

func (e *engine) classify(args []js.Value) (any, error) {
	name, o, image, err := e.arguments(args)
	if err != nil {
		return nil, err
	}
	return picture.Classify(context.Background(), name, o.session, o.classifier, image, picture.Options{Top: 10,
		Seen: true})
}

func (e *engine) detect(args []js.Value) (any, error) {
	name, o, image, err := e.arguments(args)
	if err != nil {
		return nil, err
	}
	none := func(context.Context) (func(), error) { return func() {}, nil }
	return picture.Detect(context.Background(), name, o.session, o.detector, image, true, none)
}

func (e *engine) profile(args []js.Value) (any, error) {
	name, o, image, err := e.arguments(args)
	if err != nil {
		return nil, err
	}
	return picture.Measure(context.Background(), name, o.session, image)
}
