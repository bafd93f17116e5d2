package turns

import (
	"reflect"
	"strings"
)

// ArchiveColumns gives, for a pointer to one of the archived types, the columns that it stands for and pointers to their
// values, in one order. An engine reads into the pointers and writes what they lead to.
func ArchiveColumns(record any) (names []string, values []any) {
	v := reflect.ValueOf(record).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := field.Tag.Get("column")
		if name == "" {
			name, _, _ = strings.Cut(field.Tag.Get("json"), ",")
		}
		names, values = append(names, name), append(values, v.Field(i).Addr().Interface())
	}
	return names, values
}
