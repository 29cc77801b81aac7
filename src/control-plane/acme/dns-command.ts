/** Sets DNS records through a program of the operator (`--acme-dns-command`). */
import { execFile } from 'node:child_process'
import type { DnsRecords } from './dns-records.ts'

interface DnsCommandOptions {
  /** The path of an executable. */
  readonly command: string
  /** Our environment, of which the program gets a part. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly timeoutMs?: number
}

/** How long the program may take, in milliseconds: it waits until the record has spread. */
const TIMEOUT_MS = 5 * 60_000

/** What is kept of its output, in bytes; more than that is a fault. */
const MAX_OUTPUT = 64 * 1024

/** How much of its output a message repeats, in characters. */
const SHOWN = 300

/**
 * Runs the program, without a shell, with the record's name and its value, and waits for it. It succeeded if its exit code
 * is 0.
 */
export function dnsCommand({ command, env, timeoutMs = TIMEOUT_MS }: DnsCommandOptions): DnsRecords {
  const call = (action: 'present' | 'cleanup', record: string, value: string) =>
    new Promise<void>((resolve, reject) => {
      execFile(
        command,
        [record, value],
        {
          env: { ...withoutOurs(env), POSTERN_ACME_ACTION: action },
          timeout: timeoutMs,
          maxBuffer: MAX_OUTPUT,
          killSignal: 'SIGKILL',
          shell: false,
        },
        (error, _, stderr) => {
          if (!error) resolve()
          else reject(new Error(`\`--acme-dns-command\` ${fate(error)}${lastWords(stderr)}`, { cause: error }))
        },
      )
    })
  return {
    present: (record, value) => call('present', record, value),
    cleanup: (record, value) => call('cleanup', record, value),
  }
}

/** The program must not get the server's passwords and keys, but it needs the credentials of the DNS service. */
function withoutOurs(env: DnsCommandOptions['env']): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('POSTERN_')))
}

function fate({ code, killed }: { code?: unknown; killed?: boolean | undefined }): string {
  if (killed) return 'took too long and was killed'
  return typeof code === 'number' ? `failed with exit code ${code}` : `cannot be run (${String(code)})`
}

function lastWords(stderr: string): string {
  const text = stderr.trim()
  return text === '' ? '' : `: ${text.slice(-SHOWN)}`
}
