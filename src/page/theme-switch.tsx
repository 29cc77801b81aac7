/** The switch between light and dark. */
import { type Theme, usePage } from './page-state.ts'

const themes: readonly [theme: Theme, name: string][] = [
  ['', 'System'],
  ['light', 'Light'],
  ['dark', 'Dark'],
]

export function ThemeSwitch() {
  const { theme: chosen } = usePage()
  return (
    <label class="theme">
      <span>Theme</span>
      <select
        value={chosen.value}
        onChange={({ currentTarget: { value } }) => {
          chosen.value = value === 'light' || value === 'dark' ? value : ''
        }}
      >
        {themes.map(([theme, name]) => (
          <option key={theme} value={theme}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
