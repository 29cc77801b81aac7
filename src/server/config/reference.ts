/** Makes the reference page of the settings, `docs/config.md`, from the table. */
import type { Setting } from './setting-kinds.ts'
import { envName, fileKey, settings } from './settings-table.ts'

const intro = `# Settings

<!-- Made from src/server/config/settings-table.ts by \`npm run docs\`; change it there. -->

Each setting of \`postern serve\` can be a flag, an environment variable, or a key of the settings file.
A flag wins over a variable, a variable over the file, and the file over the default.

The file is \`postern.yml\` in the working folder, or the one named by \`--config\` or \`POSTERN_CONFIG\`. It is a flat map,
one key a line. Unknown flags, variables and keys are refused. An empty variable counts as unset.
Relative paths start at the working folder. Port 0 lets the system choose a port, which is printed at start.
Durations have a unit: \`500ms\`, \`30s\`, \`5m\`, \`1h\`.
`

/** The whole page as Markdown. */
export function configReference(): string {
  const usual = settings.filter((each) => !each.envOnly)
  return [
    intro,
    table(['flag', 'variable', 'default', 'what it sets'], usual.map(row)),
    '## Read from the environment only\n',
    'These are secrets, so there are no flags and no keys for them. Those that begin with `POSTERN_BOOTSTRAP_` are used on the first start only.\n',
    table(
      ['variable', 'default', 'what it sets'],
      settings.filter((each) => each.envOnly).map((each) => row(each).slice(1)),
    ),
    '## The file\n',
    'The key of a setting is its flag with `_` for `-`. All of them, with example values:\n',
    `\`\`\`yaml\n${usual.map((each) => `${fileKey(each.name)}: ${each.example}`).join('\n')}\n\`\`\`\n`,
    '## A change without a restart\n',
    'On SIGHUP a running server reads the file again. It applies new values of these, and logs which changed:\n',
    `${usual
      .filter((each) => each.isLive)
      .map((each) => `\`${fileKey(each.name)}\``)
      .join(', ')}.\n`,
    'It also logs which of the others changed: they need a restart. A file with a fault changes nothing.\n',
  ].join('\n')
}

function row(setting: Setting<unknown>): string[] {
  const fallback = setting.default === null ? (setting.defaultNote ?? 'unset') : setting.default
  return [`\`--${setting.name}\``, `\`${envName(setting.name)}\``, code(fallback), setting.about]
}

/** Sets a value as code; a note with spaces stays plain text. */
function code(text: string): string {
  return text.includes(' ') ? text : `\`${text}\``
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return `${[line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')}\n`
}
