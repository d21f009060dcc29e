// Prints the table of tests/bindings.rs as P/Invoke sees the interface.
using System;
using System.Reflection;
using System.Runtime.InteropServices;
using Qwen35;

static class Layout
{
    static void Main()
    {
        foreach (FieldInfo field in typeof(Native).GetFields(BindingFlags.Public | BindingFlags.Static))
            Console.WriteLine("const {0} {1}", field.Name, field.GetValue(null));
        foreach (Type type in typeof(Native).Assembly.GetTypes())
        {
            if (!type.IsValueType || !type.Name.StartsWith("qwen_")) continue;
            Console.WriteLine("struct {0} {1}", type.Name, Marshal.SizeOf(type));
            foreach (FieldInfo field in type.GetFields())
            {
                Type kind = field.FieldType.IsPointer ? typeof(IntPtr) : field.FieldType;
                Console.WriteLine("field {0}.{1} {2} {3}", type.Name, field.Name,
                    Marshal.OffsetOf(type, field.Name), Marshal.SizeOf(kind));
            }
        }
    }
}
