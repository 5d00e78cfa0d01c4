// Package zipfile reads zip archives whose entries are what they say: inside the file, apart from
// each other, and each name once.
package zipfile
