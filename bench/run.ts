/** `npm run bench -- <name>`: runs one benchmark, or says which there are. */
const benches: Record<string, () => Promise<{ main: (args: readonly string[]) => Promise<void> }>> = {
  api: () => import('./api/main.ts'),
  edge: () => import('./edge/main.ts'),
  tunnel: () => import('./tunnel/main.ts'),
  wire: () => import('./wire/main.ts'),
}

const [name = '', ...args] = process.argv.slice(2)
const load = Object.hasOwn(benches, name) ? benches[name] : undefined
if (load) await (await load()).main(args)
else {
  console.error(`usage: npm run bench -- <name> [options]\nnames: ${Object.keys(benches).join(', ')}`)
  process.exitCode = 2
}
