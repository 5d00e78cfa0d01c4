package main

import "testing"

func TestSameCode(t *testing.T) {
	const code = "//go:build linux\n\npackage a\n\n// F is f.\nfunc F() int { return 1 } // one\n"
	for what, c := range map[string]struct {
		name, now string
		want      bool
	}{
		"the same": {"a.go", code, true},
		"another comment": {"a.go", "//go:build linux\n\npackage a\n\n/* F\nreturns */\nfunc F() int { " +
			"return 1 }\n", true},
		"another space": {"a.go", "//go:build linux\npackage a\n\n\nfunc F()  int { return 1 }\n", true},
		"another number": {"a.go", "//go:build linux\n\npackage a\n\n// F is f.\nfunc F() int { return 2 } " +
			"// one\n", false},
		"another directive": {"a.go", "//go:build darwin\n\npackage a\n\n// F is f.\nfunc F() int { return 1 } " +
			"// one\n", false},
		"no directive": {"a.go", "package a\n\n// F is f.\nfunc F() int { return 1 } // one\n", false},
		"a new directive": {"a.go", "//go:build linux\n\npackage a\n\n//go:noinline\nfunc F() int { return 1 } " +
			"// one\n", false},
		"more code": {"a.go", code + "var x int\n", false},
		"a test":    {"a_test.go", code + "// Output: 1\n", false},
		"no Go":     {"a.go", code + "\"", false},
	} {
		if got := sameCode(c.name, code, c.now); got != c.want {
			t.Errorf("%s: got %v, want %v", what, got, c.want)
		}
		if got := sameCode(c.name, c.now, code); got != c.want {
			t.Errorf("%s, in the other order: got %v, want %v", what, got, c.want)
		}
	}
}
