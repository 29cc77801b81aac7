/** A field for one line, with its label. */

interface TextInputProps {
  readonly label: string
  readonly value: string
  readonly onText: (text: string) => void
  /** Waits with `onText` for Enter, or until the field loses focus. */
  readonly isLazy?: boolean
  readonly required?: boolean
}

export function TextInput({ label, value, onText, isLazy = false, required = false }: TextInputProps) {
  const take = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => onText(currentTarget.value)
  return (
    <label>
      {label}
      <input
        value={value}
        required={required}
        spellcheck={false}
        autoComplete="off"
        onInput={isLazy ? undefined : take}
        onChange={isLazy ? take : undefined}
      />
    </label>
  )
}
