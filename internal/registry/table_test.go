package registry

import (
	"fmt"
	"testing"
)

func TestNamesAreUniqueAndGivenBeforeTheProgramBegins(t *testing.T) {
	var table Table[int]
	add := func(name string, v int) (text string) {
		defer func() {
			if r := recover(); r != nil {
				text = fmt.Sprint(r)
			}
		}()
		table.Add("x: Register", name, v)
		return ""
	}
	if text := add("a", 1) + add("b", 2); text != "" || Sealed() {
		t.Errorf("%q, sealed: %v", text, Sealed())
	}
	const taken = `x: Register("a"): name is already taken: names must be unique in a program`
	if text := add("a", 3); text != taken {
		t.Error(text)
	}
	Seal()
	defer begun.Store(false) // for -count above 1
	if text := add("c",
		4); text != `x: Register("c"): called after Main has begun: declare it as a package-level variable` {
		t.Error(text)
	}
	if text := add("a", 5); text != taken {
		t.Error(text)
	}
	a, ok := table.Get("a")
	if _, late := table.Get("c"); a != 1 || !ok || late {
		t.Errorf("%d %v %v", a, ok, late)
	}
	sum := 0
	for v := range table.All {
		sum += v
	}
	if sum != 3 {
		t.Errorf("all are %d together", sum)
	}
}
