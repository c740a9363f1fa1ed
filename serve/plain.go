package serve

import "google.golang.org/protobuf/reflect/protoreflect"

// plain returns a message in the form that Triton's JSON has: with the names of the fields, all
// of them but those of a oneof that are not set, with names for enumerations, and with numbers
// for integers of 64 bits, where the JSON of protocol buffers has strings.
func plain(m protoreflect.Message) map[string]any {
	object := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		if f.IsMap() {
			entries := map[string]any{}
			m.Get(f).Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				entries[k.String()] = plainValue(f.MapValue(), v)
				return true
			})
			object[string(f.Name())] = entries
			continue
		}
		if !f.IsList() {
			object[string(f.Name())] = plainValue(f, m.Get(f))
			continue
		}
		list, values := m.Get(f).List(), []any{}
		for j := range list.Len() {
			values = append(values, plainValue(f, list.Get(j)))
		}
		object[string(f.Name())] = values
	}
	return object
}

func plainValue(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return plain(v.Message())
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			return string(e.Name())
		}
		return int32(v.Enum())
	}
	return v.Interface()
}
