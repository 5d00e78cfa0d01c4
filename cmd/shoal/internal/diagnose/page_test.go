package diagnose_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageVerdicts returns the generalized verdicts in the table of docs/doctor.md, by rule.
func pageVerdicts(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	verdicts := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		column := strings.Split(line, "|")
		if len(column) != 6 || !strings.Contains(column[2], "`") {
			continue
		}
		for rule := range strings.SplitSeq(column[2], ",") {
			rule = strings.Trim(rule, " `")
			verdicts[rule] = append(verdicts[rule], generalize(strings.TrimSpace(column[3])))
		}
	}
	return verdicts
}

var specifics = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`control group /\S+?,? `), "control group /G "},
	{regexp.MustCompile(`\([^()]*(?:file|function|socket|read|futex|sleep)[^()]*\)`), "(WAIT)"},
	{regexp.MustCompile(`DataLoader worker|spawned process|forked process|main|rank (\d+)`), "process"},
	{regexp.MustCompile(`\d+(\.\d+)?( [KMGT]?i?B\b)?`), "N"},
	{regexp.MustCompile(`\b1 (process|other rank|sibling|idle worker)\b`), "N $1"},
	{regexp.MustCompile(`processes\b`), "process"},
	{regexp.MustCompile(`\b(wait|rank|sibling|worker|name|thread)s\b`), "$1"},
	{regexp.MustCompile(`the other rank wait`), "N other rank wait"},
}

// generalize replaces the parts of a verdict that differ between runs: numbers, roles, paths and
// the plural.
func generalize(verdict string) string {
	for _, s := range specifics {
		verdict = s.pattern.ReplaceAllString(verdict, s.with)
	}
	return verdict
}

var ruleName = regexp.MustCompile(`(?:Rule:|\.Rule = |f\.Rule, f\.\w+ = |f\.Rule, f\.PID, f\.weight =) *"([a-z-]+)"`)

func TestPage_HasARowForEachRule(t *testing.T) {
	page := pageVerdicts(t)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ruleName.FindAllStringSubmatch(string(text), -1) {
			rules = append(rules, m[1])
			if len(page[m[1]]) == 0 {
				t.Errorf("docs/doctor.md has no row for the rule %s of %s", m[1], name)
			}
		}
	}
	if len(rules) < 20 {
		t.Errorf("found %d rules in the source: %v", len(rules), rules)
	}
	for rule := range page {
		if !slices.Contains(rules, rule) {
			t.Errorf("docs/doctor.md has the rule %s, which no source file has", rule)
		}
	}
}
