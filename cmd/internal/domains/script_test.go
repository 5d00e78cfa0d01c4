package domains

import (
	"strings"
	"testing"
)

func TestScriptName(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"python3 train.py --epochs 2", "train.py"},
		{"/usr/bin/python3.14 -u -X dev -W error /home/me/train.py -m", "train.py"},
		{"python -m torch.distributed.run train.py", "torch.distributed.run"},
		{"python -c from multiprocessing.spawn import spawn_main; spawn_main()", spawned},
		{"pypy3 a.py", "a.py"},
		{"python", ""},
		{"python -m", ""},
		{"python -c", ""},
		{"python -c print(1)", ""},
		{"./trainer train.py", ""},
		{"", ""},
	} {
		words := strings.Split(c.line, " ")
		if i := strings.Index(c.line, "from multi"); i >= 0 { // the command is one word
			words = append(strings.Fields(c.line[:i]), c.line[i:])
		}
		if got := scriptName(words); got != c.want {
			t.Errorf("scriptName(%q) = %q, want %q", c.line, got, c.want)
		}
	}
}
