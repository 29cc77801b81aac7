/** The help text of the gateway. */
import type { TunnelKind } from '../../link/options/endpoint-options.ts'
import { aboutFlag, flagsOf } from '../../link/options/take-flags.ts'

interface About {
  readonly about: string
  readonly examples: readonly string[]
}

const commands: Readonly<Record<TunnelKind, About>> = {
  http: {
    about: 'HTTP and HTTPS, at a name of its own',
    examples: [
      'ssh -R 443:localhost:3000 -p 2222 SERVER http',
      'ssh -R app.example.com:443:localhost:3000 -p 2222 SERVER http --cidr-allow 192.0.2.0/24',
    ],
  },
  tls: {
    about: 'TLS, passed through to your service, at a name of its own',
    examples: ['ssh -R app.example.com:443:localhost:8443 -p 2222 SERVER tls'],
  },
  tcp: {
    about: 'any TCP, at a port of its own',
    examples: ['ssh -R 0:localhost:22 -p 2222 SERVER tcp'],
  },
  labeled: {
    about: 'no address of its own: edges find it by its labels',
    examples: ['ssh -R 0:localhost:3000 -p 2222 SERVER labeled --label app=web'],
  },
}

/** For one command, or for all. */
export function helpText(kind: TunnelKind | undefined): string {
  const lines = [`Usage: ssh -R [NAME:]PORT:HOST:PORT -p 2222 SERVER ${kind ?? 'COMMAND'} [flags]`, '']
  if (kind === undefined) {
    lines.push('Commands:', ...Object.entries(commands).map(([name, { about }]) => `  ${name.padEnd(10)}${about}`))
    lines.push('', 'COMMAND --help shows its flags. PORT is 80 or 443 for http, 443 for tls, or 0 for the default.')
  } else {
    const rows = flagsOf('gateway', kind).map((flag) => [
      `--${flag.name}${flag.takes === undefined ? '' : ` <${flag.takes}>`}`,
      aboutFlag(flag, 'gateway'),
    ])
    const width = Math.max(...rows.map(([flag = '']) => flag.length)) + 2
    lines.push('Flags:', ...rows.map(([flag = '', about]) => `  ${flag.padEnd(width)}${about}`))
    lines.push(
      '',
      `Values with spaces need two pairs of quotes: "--name='a b'". Give the content of a file, not its name.`,
    )
    lines.push('', 'Examples:', ...commands[kind].examples.map((example) => `  ${example}`))
  }
  return `${lines.join('\n')}\n`
}
