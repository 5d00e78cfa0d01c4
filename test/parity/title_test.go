package main

import "strings"

// modules may stand before a name in a title; the names that are recorded have none.
var modules = strings.Fields("connection shared_memory sharedctypes managers pool torch nn reduction util")

// namesIn returns the names of a title: each word, without its module as well, and those in
// parentheses with the class before them.
func namesIn(title string) (names []string) {
	class, last := "", ""
	for title != "" {
		end := strings.IndexAny(title, " ,;()=*")
		if end < 0 {
			end = len(title)
		}
		word := bare(title[:end])
		if word != "" {
			names = append(names, title[:end], word)
		}
		switch {
		case word == "":
		case class != "":
			names = append(names, class+"."+word)
		default:
			last = word
		}
		if end == len(title) {
			break
		}
		switch title[end] {
		case '(':
			class = last
		case ')':
			class = ""
		}
		title = title[end+1:]
	}
	return names
}

// bare returns a name without its module.
func bare(name string) string {
	for _, m := range modules {
		if rest, ok := strings.CutPrefix(name, m+"."); ok {
			return rest
		}
	}
	return name
}
