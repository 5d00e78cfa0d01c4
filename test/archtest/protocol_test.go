package archtest_test

import (
	"os"
	"regexp"
	"testing"
)

// TestProtocolHasTheVersionsOfTheCode fails where a version has grown and PROTOCOL.md has not been
// told.
func TestProtocolHasTheVersionsOfTheCode(t *testing.T) {
	tree := os.DirFS("../..")
	page := string(read(t, tree, "PROTOCOL.md"))
	for _, v := range []struct{ said, file, code string }{
		{`layout hash,\s+in\s+which\s+the\s+version\s+is\s+(\d+)`, "internal/arena/layout/layout.go",
			`ProtocolVersion = (\d+)`},
		{`link\s+by\s+the\s+version\s+(\d+)`, "internal/link/handshake.go", `helloBytes = .*'L', (\d+), 0}`},
		{`VERSION\s+is\s+(\d+)`, "worker_env.go", `workerEnvVersion = (\d+)`},
		{`worker\s+by\s+the\s+version\s+(\d+)`, "worker_env.go", `workerEnvVersion = (\d+)`},
	} {
		said := regexp.MustCompile(v.said).FindStringSubmatch(page)
		code := regexp.MustCompile(v.code).FindSubmatch(read(t, tree, v.file))
		switch {
		case said == nil || code == nil:
			t.Errorf("the version in %s: PROTOCOL.md has %q, the code %q", v.file, said, code)
		case said[1] != string(code[1]):
			t.Errorf("%s has version %s, and PROTOCOL.md %s", v.file, code[1], said[1])
		}
	}
}
