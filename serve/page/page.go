// Package page has the files of the page that shows models at work: what server.js does with a
// server, wasm.js does with the engine in WebAssembly (see make web).
package page

import "embed"

// Files are those of the page with a server.
//
//go:embed index.html page.css page.js boxes.js server.js icon.svg
var Files embed.FS
