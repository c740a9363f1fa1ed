GO       ?= go
FUZZTIME ?= 60s
N ?= 300
COUNT    ?= 6

PREFIX   ?= /usr/local

# What make bench times first; see docs/command.md.
BENCHFLAGS ?= --model vehiclenet --device all

# CUDA and OpenCL need cgo and a C compiler, but no headers and no driver.
ifneq ($(and $(filter 1,$(shell $(GO) env CGO_ENABLED)),$(filter linux,$(shell $(GO) env GOOS)),$(filter amd64 arm64,$(shell $(GO) env GOARCH)),$(shell command -v $$($(GO) env CC))),)
TAGS ?= cuda,opencl
export PKG_CONFIG ?= $(CURDIR)/scripts/opencl-pkg-config
export CGO_CFLAGS := $(or $(CGO_CFLAGS),-O2 -g) -I$(CURDIR)/backend/cuda/internal/shim/include
endif
TAGFLAGS := $(if $(TAGS),-tags $(TAGS))

# Without the tables of debuggers, which are a fifth of the file.
LDFLAGS ?= -ldflags="-s -w"

.PHONY: build ci stage build-arm64 build-windows windows-check check-python check-serve check-page web arm-check arm-check-build wheel lib install image demo test check check-deploy lint release release-check fuzz fuzz-import mutate bench bench-peers bench-engines opencl-check opencl-faults ptx ptx-check ptx-assemble emulated cuda-ptx cuda-check gpu-check gpu-check-build clean help
.DEFAULT_GOAL := build

build: ## build bin/bcnn (the default)
	$(GO) build $(TAGFLAGS) $(LDFLAGS) -o bin/bcnn ./cmd/bcnn

demo: build ## classify the bundled images on every available device, with times
	bin/bcnn demo

test: ## run before a commit: all packages, backends on chosen cases (installs missing tools)
	./scripts/stages/test

stage: ## run one stage of ci or check: NAME=race
	./scripts/stage $(NAME)

# What runs at each commit, and what else make check has.
COMMIT := demo test long sets parity race generated formats ship
MORE := tools full table drivers processors arm sanitize assemble fuzz windows python clients attack release

ci: ## run the stages of each commit, as .ci/run does
	./scripts/stage $(COMMIT)
	@./scripts/stage --old 150 $(MORE)

check: ## run everything, for hours: each stage of ci, and the long ones; passes are recorded in scripts/stages.tsv
	./scripts/stage --record $(COMMIT) $(MORE)

check-serve: ## test bcnn serve with tritonclient and KServe's client (installs 700 MB from PyPI)
	./scripts/check-serve

check-deploy: ## validate deploy/ with systemd-analyze and schemas of Kubernetes and KServe (installs 600 MB from PyPI)
	./scripts/check-deploy

check-page: ## test the page in headless Chromium (Debian: chromium nodejs npm), with a server and in WebAssembly
	./scripts/check-page

web: ## build the page in build/web as static files, with the engine in WebAssembly
	./scripts/web

check-python: ## test the Python package with PyTorch, Ray, PySpark and notebooks (installs 6 GB from PyPI)
	./scripts/check-python

lint: ## check with staticcheck, ineffassign and misspell
	./scripts/lint

release: ## build archives, deb, rpm, wheels, OCI image and Homebrew formula in build/release; the version is git's tag
	./scripts/release $(PLATFORMS)

release-check: ## build the release twice under different conditions, and compare all bytes
	./scripts/release check $(PLATFORMS)

fuzz: ## run every fuzz target for FUZZTIME each (default 60s)
	./scripts/fuzz $(FUZZTIME)

fuzz-import: ## compare importers with other engines, from PyPI, on random graphs for FUZZTIME; IMPORTFLAGS adds flags, "lce" first for TensorFlow Lite
	FUZZTIME=$(FUZZTIME) ./scripts/fuzz-import $(IMPORTFLAGS)

mutate: ## change one token of PACKAGE at a time, N times, and report the changes that no test detects
	$(GO) build -C tools -o ../build/mutate ./mutate
	build/mutate -n $(N) $(TAGFLAGS) $(MUTATEFLAGS) $(PACKAGE)

bench: build ## time VehicleNet on every device, then the Go benchmarks COUNT times
	bin/bcnn bench $(BENCHFLAGS)
	$(GO) test $(TAGFLAGS) -run '^$$' -bench . -count $(COUNT) ./...

bench-peers: ## compare with OpenBLAS, oneDNN and a plain xnor GEMM; ISA=avx2 and PEERFLAGS add flags
	ISA=$(ISA) ./scripts/bench-peers $(PEERFLAGS)

bench-engines: ## compare with OpenVINO, Larq Compute Engine and ONNX Runtime, from PyPI; ENGINEFLAGS adds flags
	./scripts/bench-engines $(ENGINEFLAGS)

build-windows: ## build bin/bcnn.exe (Debian: gcc-mingw-w64-x86-64)
	bash -c '. scripts/common && for_windows && $(GO) build -tags cuda,opencl $(LDFLAGS) -o bin/bcnn.exe ./cmd/bcnn'

build-arm64: ## build bin/bcnn-arm64 as in a release, for glibc 2.17 and later (Debian: python3-venv)
	bash -c '. scripts/common && build_command linux arm64 build/arm64 && mv build/arm64/bcnn bin/bcnn-arm64'

lib: ## build the C library in build/lib: libbitcnn.so, libbitcnn.a, bitcnn.h (TARGET=windows: bitcnn.dll)
	TARGET=$(TARGET) ./scripts/lib

install: ## install the C library in PREFIX (default /usr/local); for the command, use a package or copy bin/bcnn
	./scripts/lib install $(PREFIX)

image: ## build localhost/bitcnn:cpu with podman, buildah or docker (TARGET=gpu: localhost/bitcnn:gpu)
	./scripts/image $(TARGET)

wheel: ## build the Python wheel in build/wheel (Debian: python3-venv and python3-dev; TARGET=windows: for Windows)
	TARGET=$(TARGET) ./scripts/wheel $(ARCH)

opencl-check: ## run the OpenCL kernels on tiny cases under Oclgrind
	./scripts/opencl-check

opencl-faults: ## inject faults into copies of the OpenCL kernels, and show which check finds each
	./scripts/opencl-check --faults

ptx: ## compile kernels/cu to PTX (clang-16)
	./scripts/ptx

ptx-check: ## compare the committed PTX with its sources
	./scripts/ptx check

ptx-assemble: ## assemble the PTX for every GPU with NVIDIA's assemblers (from PyPI), and compare with their limits
	./scripts/ptx-assemble

emulated: ## build a CUDA driver that emulates a device (g++): LD_LIBRARY_PATH=build/emulated
	./scripts/cuda-emulator

cuda-ptx: ## run the committed PTX of every architecture, with all kernels, on an emulated device
	./scripts/cuda-ptx all

cuda-check: ## check CUDA kernels for races and invalid accesses, and find injected faults (clang-16)
	./scripts/cuda-check

windows-check: ## test the Windows build under Wine (Debian: wine64 and MinGW-w64)
	./scripts/windows-check

arm-check-build: ## build a folder, build/arm-check, that checks an Arm board or phone without Go (TARGET=arm: 32 bits; PEERS=FOLDER: models)
	TARGET=$(TARGET) PEERS=$(PEERS) ./scripts/arm-check-build

arm-check: arm-check-build ## check and measure the CPU backend on this Arm machine
	./scripts/arm-check

gpu-check-build: ## build a folder, build/gpu-check, that checks a machine with an NVIDIA GPU and without Go
	./scripts/gpu-check-build

gpu-check: gpu-check-build ## check and measure the CUDA backend on this machine's GPU
	./scripts/gpu-check

clean: ## remove build outputs
	rm -rf bin build

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
