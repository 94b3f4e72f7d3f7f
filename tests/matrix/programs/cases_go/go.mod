module cases

go 1.19
