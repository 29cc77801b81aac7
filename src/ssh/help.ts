/** How to use the gateway, as text. */
import { flags, type TunnelKind } from './flags.ts'

const commands: readonly (readonly [kind: TunnelKind, about: string])[] = [
  ['http', 'HTTP and HTTPS: a name of its own'],
  ['tls', 'TLS, passed through to your service: a name of its own'],
  ['tcp', 'any TCP: a port of its own'],
  ['labeled', 'no address: edges find it by its labels'],
]

export function helpText(kind: TunnelKind | undefined): string {
  const lines = [`Usage: ssh -R [NAME:]PORT:HOST:PORT -p 2222 SERVER ${kind ?? 'COMMAND'} [flags]`, '']
  if (kind === undefined) {
    lines.push('Commands:', ...commands.map(([name, about]) => `  ${name.padEnd(10)}${about}`))
    lines.push('', 'COMMAND --help shows its flags. PORT is 80 or 443 for http, 443 for tls, 0 for the usual one.')
  } else {
    const rows = flags
      .filter((flag) => flag.for.includes(kind))
      .map(({ name, takes, about }) => [`--${name}${takes === undefined ? '' : ` <${takes}>`}`, about] as const)
    const width = Math.max(...rows.map(([flag]) => flag.length)) + 2
    lines.push('Flags:', ...rows.map(([flag, about]) => `  ${flag.padEnd(width)}${about}`))
  }
  return `${lines.join('\n')}\n`
}
