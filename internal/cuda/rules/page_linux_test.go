package rules_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page on GPUs says of each rule which question decides it. A question that no rule is decided
// by, or a rule whose question is gone, is a page that is out of date. The name keeps this test out
// of gpu-suite, which has no page.
func TestPage_SaysWhatDecidesEachRule(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cuda.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| rule | from | confirmed by a driver |")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found || !strings.Contains(table, "yes: group 2") {
		t.Fatal("docs/cuda.md has no table of rules")
	}
	step := regexp.MustCompile(`\b[TQ]\d+\b`)
	cited := map[string]string{} // the group that a row has before a step
	for row := range strings.Lines(table) {
		group := ""
		for _, word := range strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune(" ,|:;\n", r) }) {
			switch {
			case step.MatchString(word):
				cited[word] += group
			case slices.Contains([]string{"1", "2", "3", "4a", "4b", "5", "6"}, word):
				group = word
			}
		}
	}
	asked := map[string]string{}
	for _, r := range rules {
		group := "3"
		if r.want != "" {
			group = "2"
		}
		asked[r.step] += group
		if !strings.Contains(cited[r.step], group) {
			t.Errorf("docs/cuda.md has no rule that %s of group %s decides: %s", r.step, group, r.asked)
		}
	}
	for s, groups := range cited {
		if strings.Trim(groups, asked[s]) != "" || asked[s] == "" {
			t.Errorf("docs/cuda.md cites %s of groups %s, and it is asked in groups %s", s, groups, asked[s])
		}
	}
}
