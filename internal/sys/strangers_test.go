package sys_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A guest notes in what order those like it are closed.
type guest struct {
	name string
	gone *[]string
}

func (g *guest) Close() error { *g.gone = append(*g.gone, g.name); return nil }

func TestStrangers_TheOldestOfTheSourceWithTheMostGoes(t *testing.T) {
	const resourceLimit = 4
	for name, c := range map[string]struct {
		come []string // source and number, in this order; "-" and a name leaves
		gone []string
	}{
		"few":                {[]string{"a1", "b1", "a2", "b2"}, nil},
		"one source":         {[]string{"a1", "a2", "a3", "a4", "a5", "a6"}, []string{"a1", "a2"}},
		"the older one":      {[]string{"b1", "a1", "a2", "a3", "a4", "a5"}, []string{"a1", "a2"}},
		"the newer one":      {[]string{"a1", "a2", "a3", "a4", "b1"}, []string{"a1"}},
		"it counts itself":   {[]string{"a1", "b1", "c1", "d1", "d2"}, []string{"d1"}},
		"as many of each":    {[]string{"a1", "b1", "b2", "a2", "c1"}, []string{"a1"}},
		"each another":       {[]string{"a1", "b1", "c1", "d1", "e1", "f1"}, []string{"a1", "b1"}},
		"who left is no one": {[]string{"a1", "a2", "a3", "a4", "-a1", "a5", "a6"}, []string{"a2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var gone []string
			s := sys.NewStrangers(resourceLimit)
			all := make(map[string]*guest)
			for _, name := range c.come {
				if name[0] == '-' {
					s.Leave(all[name[1:]])
					continue
				}
				all[name] = &guest{name, &gone}
				s.Enter(all[name], name[0])
			}
			if !slices.Equal(gone, c.gone) {
				t.Errorf("%v went, want %v", gone, c.gone)
			}
		})
	}
}

func TestStrangers_CloseClosesAll(t *testing.T) {
	var gone []string
	s := sys.NewStrangers(2)
	s.Enter(&guest{"a", &gone}, 1)
	s.Enter(&guest{"b", &gone}, 2)
	s.Close()
	s.Enter(&guest{"late", &gone}, 1)
	s.Close()
	if want := []string{"a", "b", "late"}; !slices.Equal(gone, want) {
		t.Errorf("%v went, want %v", gone, want)
	}
}
