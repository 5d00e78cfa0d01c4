package pixel

func native() *loops { return &portable }
