/** `npm run bench -- <name>`: runs one benchmark, or lists them. */
import { faultLine, isFlagFault } from './flags.ts'

const benches: Record<string, () => Promise<{ main: (args: readonly string[]) => Promise<void> }>> = {
  api: () => import('./api/main.ts'),
  cluster: () => import('./cluster/main.ts'),
  cores: () => import('./cores/main.ts'),
  edge: () => import('./edge/main.ts'),
  policy: () => import('./policy/main.ts'),
  ssh: () => import('./ssh/main.ts'),
  start: () => import('./start/main.ts'),
  tunnel: () => import('./tunnel/main.ts'),
  versions: () => import('./versions/main.ts'),
  wire: () => import('./wire/main.ts'),
}

const [name = '', ...args] = process.argv.slice(2)
const load = Object.hasOwn(benches, name) ? benches[name] : undefined
const usage = `usage: npm run bench -- <name> [options]
names: ${Object.keys(benches).join(', ')}
options: see bench/README.md`

if ([name, ...args].some((word) => word === '--help' || word === '-h')) console.log(usage)
else if (load) {
  try {
    await (await load()).main(args)
  } catch (error) {
    if (!isFlagFault(error)) throw error
    console.error(`${faultLine(error)}\n${usage}`)
    process.exitCode = 2
  }
} else {
  console.error(`${name === '' ? 'name a benchmark' : `unknown benchmark ${name}`}\n${usage}`)
  process.exitCode = 2
}
