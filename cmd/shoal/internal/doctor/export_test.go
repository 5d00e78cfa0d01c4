package doctor

var Advise = advise
