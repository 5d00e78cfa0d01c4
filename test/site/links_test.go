package main

import "testing"

func TestRelink(t *testing.T) {
	s := &site{code: map[string]bool{}, files: map[string]bool{"README.md": true, "docs/guide.md": true,
		"docs/a.svg": true, "docs/learn/README.md": true, "ipc/queue.go": true, "internal/arena/doc.go": true,
		"examples/queue/main.go": true}}
	for _, c := range [][2]string{
		{"[a](guide.md#ends)", "[a](guide.md#ends)"},
		{"![a](a.svg)", "![a](a.svg)"},
		{"[a](https://go.dev/x)", "[a](https://go.dev/x)"},
		{"[a](#here)", "[a](#here)"},
		{"[a](../ipc)", "[a](../packages/ipc.md)"},
		{"[a](../ipc/queue.go) and [b](learn)", "[a](../ipc/queue.go.md) and [b](learn/README.md)"},
		{"[a](../internal/arena)", "[a](../internal/arena/doc.go.md)"},
		{"[a](../examples/queue)", "[a](../examples/queue/main.go.md)"},
		{"[a](../nowhere)", "[a](../nowhere)"}, // which the generator reports
		{"```go\nf[a](../ipc)\n```\n[a](../ipc)", "```go\nf[a](../ipc)\n```\n[a](../packages/ipc.md)"},
		{"````\n```\n[a](../ipc)\n````\n", "````\n```\n[a](../ipc)\n````\n"},
	} {
		if got := s.relink("docs/guide.md", c[0]); got != c[1] {
			t.Errorf("%q became %q, not %q", c[0], got, c[1])
		}
	}
	for _, file := range []string{"ipc/queue.go", "internal/arena/doc.go", "examples/queue/main.go"} {
		if !s.code[file] {
			t.Errorf("%s has no page", file)
		}
	}
}
