# Every target works on a fresh machine with Go and a module proxy; nothing is installed by hand.
KILLS ?= 1000
PYTHON ?= $(if $(wildcard $(HOME)/.cache/shoal/interop/torch/bin/python),$(HOME)/.cache/shoal/interop/torch/bin/python,python3)
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The packages of all modules here: what go test, go vet and go list are given.
PACKAGES ?= work

# How many packages make test tests at once: one more than processors, because many of them wait.
AT_ONCE ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

.PHONY: patterns landing test check race lint-here typecheck vet-others browser crashpoints crashpoints-full storm scribbles torture histories schedules model fuzz fuzz-long vuln lint bench interop interop-short interop-full userscripts loader pictures docs face ptxas gpu gpu-build cluster release native test-python python-storm

test: ## all tests; no root, no network but the module proxy, no Python
	go test -p $(AT_ONCE) -vet=all $(PACKAGES)
	@python3 -c 'import torch' 2>/dev/null || echo "python3 has no PyTorch: what needs one was skipped; make interop installs one"

check: test race lint crashpoints storm ## the checks before a change is sent; CI runs more: see .ci/steps

patterns:
	@echo '$(PACKAGES)'

landing: ## marks the last commit for CI: SINCE is the last commit of the previous landing; see .ci/steps
	@test -n "$(SINCE)" || { echo "make landing SINCE=COMMIT: want the last commit of the previous landing"; exit 2; }
	@go run ./test/ci mark "$(SINCE)"

race: ## the same protocols on the heap, where the race detector sees them; the models and the tests of the source share nothing, and take minutes with it
	go test -race -vet=off -timeout 25m $$(go list $(PACKAGES) | grep -vE '/test/(model|archtest)$$')

crashpoints: ## kill a process before and after every write to shared memory, and stop one there
	go run -tags shoalcrash ./test/crashtest points

crashpoints-full: ## the same, with a stop at each write in each scenario that comes to it
	go run -tags shoalcrash ./test/crashtest points -stops all

storm: ## kill processes at random under load
	go run -tags shoalcrash ./test/crashtest storm -kills $(KILLS)

scribbles: ## garbage in the control segment of 2,000 domains while processes work: nobody crashes or hangs
	go test ./internal/arena -run '^TestScribble' -v -timeout 30m -scribble.trials 2000

# How many minutes make torture takes: 15, with TORTURE=night 6 hours.
TORTURE_MINUTES ?= $(if $(filter night,$(TORTURE)),360,15)
# The first of the storms' seeds. A night in pieces has another one for each piece.
TORTURE_SEED ?= 1

torture: ## kills, stops, deaths at birth and garbage, for 15 minutes (TORTURE_MINUTES), or 6 hours (TORTURE=night): one line of JSON
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && go test -c -o "$$dir/arena.test" ./internal/arena && go build -tags shoalcrash -o "$$dir/crashtest" ./test/crashtest && go build -o "$$dir/torture" ./test/torture && go build -o "$$dir/histories" ./test/histories && cd "$$dir" && ./torture -time $(TORTURE_MINUTES)m -seed $(TORTURE_SEED) -rings ./crashtest -garbage ./arena.test -histories ./histories

histories: ## recorded operations of several processes on queues, Latest, dicts, mutexes and semaphores, with kills, checked by Porcupine; and ten planted faults, each of which it must find
	go test ./test/histories -v -count=1 -timeout 35m -histories.sessions 40 -histories.mutants

browser: ## the page of shoal watch in a headless Chromium, against a run that jams; SCREENSHOTS names a folder for pictures of every panel
	cd cmd/internal/watch/browser && export GOWORK=off && go vet . && SHOAL_SCREENSHOTS=$(if $(SCREENSHOTS),$(abspath $(SCREENSHOTS))) go test -count=1 -timeout 10m -v .

interop: ## every test of torch against a current PyTorch, and a short list against an old one, 2.4 and Python 3.14, which are installed where they are missing; every Python that is found; the scripts of users at a small scale
	./scripts/interop

interop-short: ## a short list of tests of torch against an old and a current PyTorch, and a few runs of the README's program: minutes
	./scripts/interop --short

interop-full: ## the same, with every test against all of them, and the scripts of users with data of some size
	./scripts/interop --full

.PHONY: acceptance
acceptance: ## T1 to T19 of docs/acceptance.md, here and with torch.multiprocessing in one run: a table of both; PYTHON has PyTorch; a quarter of an hour
	./scripts/acceptance/run.py --python $(PYTHON)

loader: ## the ready-made data sets for a DataLoader, a static program: ./loader
	CGO_ENABLED=0 go build -o loader ./cmd/shoal-loader

userscripts: ## training scripts as people write them, with Python workers and with Go workers: the same batches, and how many times as fast; PYTHON has PyTorch, and what else they need
	./scripts/userscripts/run.py --python $(PYTHON) --readme 200

ptxas: ## NVIDIA's assembler on the text of every kernel, and its header on every call of the driver; both are installed where they are missing
	./scripts/ptxas

cluster: ## ranks of MPI libraries, data hosts and queues of three brokers, on this machine and on hosts that are made of it; one line of JSON
	./scripts/cluster

lint: lint-here vet-others ## gofmt, go vet and staticcheck here, and go vet for other systems

lint-here: gofmt typecheck staticcheck
	go vet $(PACKAGES)

.PHONY: gofmt staticcheck
gofmt:
	test -z "$$(gofmt -l .)"

staticcheck:
	go run $(STATICCHECK) $(PACKAGES)

typecheck: ## the types of all packages on other systems, from source; make vet-others compiles all dependencies, too
	go run ./test/typecheck $(PACKAGES)

vet-others:
	for system in darwin/arm64 windows/amd64 linux/arm64; do ./scripts/vet-others $$system $(PACKAGES) || exit; done

bench: ## all benchmark rows, against a PyTorch if python3 has one
	go run ./cmd/shoal bench --all --against torch

schedules: ## the code of internal/arena under a scheduler that tries the orders of its steps: one preemption more than CI, and many random ones; minutes
	go test -tags shoalcrash ./internal/arena -run '^TestSchedules' -v -timeout 60m -schedule.deeper=1 -schedule.random=200000

model: ## the models of the protocol with one more death each; minutes
	go test ./test/model -v -timeout 30m -model.crashes=1

fuzz: ## every fuzz target for half a minute
	./scripts/fuzz

fuzz-long: ## every fuzz target for ten minutes, and a table of what each found: build/fuzz.md; half a day (FUZZTIME, FUZZ: a pattern of targets)
	mkdir -p build
	FUZZTIME=$(or $(FUZZTIME),10m) FUZZLOG=$(CURDIR)/build/fuzz.md ./scripts/fuzz

vuln: ## known faults in what the programs link; where vuln.go.dev cannot be reached, it says so
	./scripts/vuln

pictures: ## docs/*.svg, drawn from a run on a terminal, and docs/howto/watch-*.png, from a browser; needs the program script of util-linux, and Chromium
	go run ./test/pictures
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(MAKE) browser SCREENSHOTS=$$dir && cp $$dir/page-light-1280.png docs/howto/watch-page.png && cp $$dir/waits-dark-1280.png docs/howto/watch-waits.png && cp $$dir/page-dark-400.png docs/howto/watch-narrow.png && cp $$dir/loaders-light-1280.png docs/howto/watch-loaders.png && cp $$dir/shapes-light-1280.png docs/howto/watch-blocks.png && cp $$dir/hosts-page-light-1280.png docs/howto/watch-hosts.png

docs: ## build/site: these pages and those of the packages, to read offline, with a search; a link that leads nowhere is an error
	./scripts/docs

face: ## what people see: the page in a browser, lessons, how-to pages, commands, the site, a release; pictures in build/face, one line of JSON
	./scripts/face

release: ## build/release: static programs for amd64 and arm64, manual pages, completions, lists of modules, checksums
	./scripts/release

native: ## build/native: the C library and Python's extension module, for this machine, with gcc; scripts/native builds those of wheels, with Zig
	./scripts/native --here

test-python: ## the tests of shoal.multiprocessing, in spawned processes, beside a PyTorch if make interop installed one
	./scripts/python-tests

python-storm: ## processes of Python and Go that are killed at random (KILLS of them), with a ledger outside
	./scripts/python-tests --storm $(KILLS)

.PHONY: wheel wheel-test
wheel: ## build/wheel: the Python distribution for this machine, with the programs and the C library inside; pip install build/wheel/shoal-*.whl
	./scripts/wheel

wheel-test: wheel ## the wheel in a fresh virtual environment without Go: the README's program, python/tests, and epochs that resume (WHEEL_CUTS of each kind); a line of JSON for each
	./scripts/wheel-test --cuts $(or $(WHEEL_CUTS),10)

gpu-build: ## build/gpu.tgz: the programs of build/gpu/gpu-suite, which unpacks them: what a machine with a GPU needs, and no Go
	rm -rf build/gpu build/gpu.tgz
	mkdir -p build/gpu
	CGO_ENABLED=0 go test -c -ldflags="-s -w" -o build/gpu/cuda.test ./cuda
	CGO_ENABLED=0 go test -c -ldflags="-s -w" -o build/gpu/rules.test ./internal/cuda/rules
	CGO_ENABLED=0 go test -c -ldflags="-s -w" -o build/gpu/dist.test ./dist
	CGO_ENABLED=0 go build -ldflags="-s -w" -o build/gpu/ ./cmd/shoal ./cmd/shoal-accel ./examples/columns ./examples/devices
	cp scripts/gpu-suite build/gpu/
	tar -C build -cf - gpu | gzip -9 >build/gpu.tgz
	cd build/gpu && rm *.test shoal shoal-accel columns devices
	@size=$$(wc -c <build/gpu.tgz); echo "build/gpu.tgz: $$size bytes"; test $$size -le $$((40 << 20)) || { echo "build/gpu.tgz is above 40 MiB"; exit 1; }

gpu: gpu-build ## everything that needs a GPU; writes docs/gpu-report.md. Without one it says what to do
	./build/gpu/gpu-suite; status=$$?; [ ! -f build/gpu/report/gpu-report.md ] || cp build/gpu/report/gpu-report.md docs/; exit $$status
