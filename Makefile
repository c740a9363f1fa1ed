GO       ?= go
FUZZTIME ?= 60s
COUNT    ?= 6

# What make bench times first; see docs/command.md.
BENCHFLAGS ?= --model vehiclenet --device all

.PHONY: build demo test fuzz bench clean help
.DEFAULT_GOAL := build

build: ## build bin/bcnn (the default)
	$(GO) build -o bin/bcnn ./cmd/bcnn

demo: build ## classify the bundled images on every device found, with times
	bin/bcnn demo

test: ## install what is missing (as root on Debian and Ubuntu) and run all tests
	./scripts/test

fuzz: ## run every fuzz target for FUZZTIME each (default 60s)
	./scripts/fuzz $(FUZZTIME)

bench: build ## time VehicleNet on every device, then the Go benchmarks COUNT times
	bin/bcnn bench $(BENCHFLAGS)
	$(GO) test -run '^$$' -bench . -count $(COUNT) ./...

clean: ## remove what was built
	rm -rf bin build

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
