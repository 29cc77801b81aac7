/** `npm run check`: the checks of the sources. `--changed [revision]` looks only at files changed since then. */
import { parseArgs } from 'node:util'
import { changedFiles } from './changed-files.ts'
import { checkCommands, runCheck } from './checks.ts'

const { values, positionals } = parseArgs({ allowPositionals: true, options: { changed: { type: 'boolean' } } })
const files = values.changed ? changedFiles(positionals[0]) : []
const { signal } = new AbortController()
const print = (text: string) => void process.stdout.write(text)
const passed = await Promise.all(checkCommands(files).map((command) => runCheck(command, { signal, print })))
process.exitCode = passed.every(Boolean) ? 0 : 1
