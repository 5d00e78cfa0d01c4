package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// rules are the checks that apply to every package. Each returns a message for each violation.
var rules = []func(h *house, p *pkg) []string{
	hasFloor, importsDownward, noCycle, noTensor, noNATS,
	imports(mayCallKernel, isKernelDoor,
		"only internal/sys calls the kernel, so that other systems need stubs in one place"),
	imports(mayLoadCode, isCodeLoader, "only internal/dl loads foreign code, so that a static binary stays possible"),
	imports(mayAskBroker, isClient,
		"only nats speaks with a broker, so that no other program links its client"),
	imports(mayBeBroker, isBroker, "only nats/broker is a broker, which is large"),
	imports(mayBeTraced, isOTel, "only shoalotel knows OpenTelemetry, so that no other program links it"),
	imports(mayUseC, func(i string) bool { return i == "C" },
		"the core builds without a C compiler and stays one static binary"),
	staysStatic, noRawCalls, noUnsafe, saysSomething, oneDoc, firstScreen,
}

// Check returns the violations of the architecture in the module with the file tree root, in the
// order of its packages, each as a sentence. module is its import path. It returns an error if a
// file cannot be parsed. Test files may import upward and use unsafe, because the rules protect
// only the code that is linked into users' programs.
func Check(module string, root fs.FS) (problems []string, err error) {
	h, err := load(module, root)
	if err != nil {
		return nil, err
	}
	for _, p := range h.packages {
		for _, rule := range rules {
			problems = append(problems, rule(h, p)...)
		}
	}
	return problems, nil
}

// Static returns the directories of the packages that must not link a C library: the packages
// that every program uses, and the command. Its arguments and its error are as for [Check].
func Static(module string, root fs.FS) (dirs []string, err error) {
	h, err := load(module, root)
	if err != nil {
		return nil, err
	}
	for _, p := range h.packages {
		if p.name != "" && isStatic(p) {
			dirs = append(dirs, p.dir)
		}
	}
	return dirs, nil
}

func isStatic(p *pkg) bool {
	floor, ok := floorOf(p.dir)
	return ok && floor <= core && !within(p.dir, mayBeDynamic) || within(p.dir, mustBeStatic)
}

func hasFloor(_ *house, p *pkg) []string {
	if _, ok := floorOf(p.dir); ok {
		return nil
	}
	return complain("%s is on no floor: give it a floor in test/archtest/floors.go, so that it is clear who may "+
		"stand on it", title(p.dir))
}

// importsDownward returns the violations of a rule: a package imports only packages of lower
// floors, and packages of its own floor only below its own directory. Packages of floor 0 may
// import each other.
func importsDownward(h *house, p *pkg) (bad []string) {
	mine, ok := floorOf(p.dir)
	if !ok {
		return nil
	}
	for _, dir := range h.needs(p) {
		floor, ok := floorOf(dir)
		inside := strings.HasPrefix(dir, p.dir+"/")
		if !ok || floor < mine || mine == 0 && floor == 0 || inside && floor == mine {
			continue
		}
		bad = append(bad, fmt.Sprintf(
			"%s (floor %d) imports %s (floor %d): imports go down only, so that each floor can be understood, "+
				"tested and used without those above",
			title(p.dir), mine, title(dir), floor))
	}
	return bad
}

func noCycle(h *house, p *pkg) []string {
	if way := h.way(p.dir, p.dir); way != nil {
		return complain("%s imports itself (%s): a circle has no bottom to begin reading at", title(p.dir),
			strings.Join(way, " → "))
	}
	return nil
}

// noNATS returns the violations of a rule: the command shoal imports neither the broker nor its
// client, also not through other packages.
func noNATS(h *house, p *pkg) (bad []string) {
	if !slices.Contains(withoutNATS, p.dir) {
		return nil
	}
	for _, dir := range []string{"nats", "nats/broker"} {
		if way := h.way(p.dir, dir); way != nil {
			bad = append(bad, fmt.Sprintf("%s imports %s (%s): shoal-broker is a program of its own, so that the "+
				"command stays small",
				title(p.dir), dir, strings.Join(way, " → ")))
		}
	}
	return bad
}

func noTensor(h *house, p *pkg) []string {
	if !slices.Contains(withoutTensor, p.dir) {
		return nil
	}
	if way := h.way(p.dir, "tensor"); way != nil {
		return complain("%s imports tensor (%s): processes and queues know only wire; a tensor is one of the "+
			"types that know how to travel",
			title(p.dir), strings.Join(way, " → "))
	}
	return nil
}

// way returns the shortest chain of imports from one directory to another, both included, or nil
// if there is none.
func (h *house) way(from, to string) []string {
	seen := map[string]bool{}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		p := h.byDir[way[len(way)-1]]
		if p == nil {
			continue
		}
		for _, next := range h.needs(p) {
			longer := append(slices.Clip(way), next)
			if next == to {
				return longer
			}
			if !seen[next] {
				seen[next] = true
				queue = append(queue, longer)
			}
		}
	}
	return nil
}

func isKernelDoor(i string) bool {
	return i == "golang.org/x/sys/unix" || i == "golang.org/x/sys/windows" || i == "golang.org/x/sys/plan9"
}

func isCodeLoader(i string) bool {
	return i == "github.com/ebitengine/purego" || strings.HasPrefix(i, "github.com/ebitengine/purego/")
}

func isNATS(i string) bool { return strings.HasPrefix(i, "github.com/nats-io/") }

// isClient reports whether an import path belongs to the client of NATS. It excludes the package
// that only parses signed account claims, because brokers use it as well.
func isClient(i string) bool {
	return isNATS(i) && !isBroker(i) && !strings.HasPrefix(i, "github.com/nats-io/jwt/")
}

func isBroker(i string) bool { return strings.HasPrefix(i, "github.com/nats-io/nats-server/") }

// isOTel reports whether an import path is OpenTelemetry, or the package that programs with
// OpenTelemetry import.
func isOTel(i string) bool {
	return strings.HasPrefix(i, "go.opentelemetry.io/") || strings.HasSuffix(i, "/shoalotel")
}

// imports returns a rule: only packages in or below the allowed directories may import a path that
// matches. The rule also applies to tests.
func imports(allowed []string, match func(string) bool, why string) func(*house, *pkg) []string {
	return func(_ *house, p *pkg) (bad []string) {
		if within(p.dir, allowed) {
			return nil
		}
		for _, f := range p.files {
			if at := slices.IndexFunc(f.imports, match); at >= 0 {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s", f.path, f.imports[at], why))
			}
		}
		return bad
	}
}

// staysStatic returns the violations of a rule: the packages of every program and the command do
// not import a package that links the C library. It checks direct imports only; a test checks
// the transitive ones with the go tool.
func staysStatic(_ *house, p *pkg) (bad []string) {
	if !isStatic(p) {
		return nil
	}
	for _, f := range p.files {
		if at := slices.IndexFunc(f.imports, IsDynamic); at >= 0 && !f.test {
			bad = append(bad, fmt.Sprintf("%s imports %s: %s", f.path, f.imports[at], WhyStatic))
		}
	}
	return bad
}

// WhyStatic is the reason why packages must not import a package that [IsDynamic] matches.
const WhyStatic = "where there is a C compiler it links the C library into every program, which each worker loads " +
	"before its first statement (0.8 ms, half as much again); internal/sys has sockets"

// IsDynamic reports whether a package of the standard library links the C library on systems with a
// C compiler.
func IsDynamic(i string) bool {
	switch i {
	case "os/user", "plugin", "runtime/cgo", "net":
		return true
	case "net/netip", "net/url":
		return false
	}
	return strings.HasPrefix(i, "net/")
}

// noRawCalls returns the violations of a rule: package syscall is for constants, types and
// signals, and not for system calls by number.
func noRawCalls(_ *house, p *pkg) (bad []string) {
	if within(p.dir, mayCallKernel) {
		return nil
	}
	for _, f := range p.files {
		if !slices.Contains(f.imports, "syscall") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if name := rawCall(n); name != "" {
				bad = append(bad, fmt.Sprintf(
					"%s uses syscall.%s: only internal/sys calls the kernel by number; package syscall is for "+
						"constants elsewhere", f.path, name))
			}
			return true
		})
	}
	return bad
}

func rawCall(n ast.Node) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok || x.Name != "syscall" {
		return ""
	}
	name := sel.Sel.Name
	if strings.HasPrefix(name, "SYS_") || strings.HasPrefix(name, "RawSyscall") || name == "Syscall" ||
		strings.HasPrefix(name, "Syscall") && strings.Trim(name[7:], "0123456789") == "" {
		return name
	}
	return ""
}

func noUnsafe(_ *house, p *pkg) (bad []string) {
	if within(p.dir, mayBeUnsafe) {
		return nil
	}
	for _, f := range p.files {
		if !f.test && slices.Contains(f.imports, "unsafe") {
			bad = append(bad, fmt.Sprintf("%s imports unsafe: it is kept to %s, where each use is argued for",
				f.path, strings.Join(mayBeUnsafe, ", ")))
		}
	}
	return bad
}

func saysSomething(_ *house, p *pkg) []string {
	for _, name := range []string{p.name, path.Base(p.dir)} {
		if slices.Contains(emptyNames, name) {
			return complain("%s is named %s, which says nothing about what is inside: name it after its one idea",
				title(p.dir), name)
		}
	}
	return nil
}

// oneDoc returns the violations of a rule: a package has a package comment in doc.go, or in
// main.go for a command, and in no other file.
func oneDoc(_ *house, p *pkg) (bad []string) {
	if p.name == "" {
		return nil
	}
	home, begin := "doc.go", "Package "+p.name+" "
	if p.name == "main" {
		home, begin = "main.go", ""
	}
	found := false
	for _, f := range p.files {
		if f.test || f.ast.Doc == nil {
			continue
		}
		if path.Base(f.path) == home {
			found = strings.TrimSpace(f.ast.Doc.Text()) != "" && strings.HasPrefix(f.ast.Doc.Text(), begin)
			continue
		}
		bad = append(bad, fmt.Sprintf(
			"%s has a package comment: it belongs to %s alone, where a reader looks first", f.path, home))
	}
	if !found {
		bad = append(bad, fmt.Sprintf("%s has no package comment in %s that begins %q: a reader starts there",
			title(p.dir), home, begin))
	}
	return bad
}

func complain(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }
