/** The request of an exchange as a curl command, quoted so that a shell runs it unchanged whatever it contains. */
import type { KeptBody, WholeExchange } from '../../model/exchange.ts'

/** Headers that curl adds itself. */
const made: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection'])

export function curlOf({ exchange, authority = exchange.host, request }: WholeExchange): string {
  const { method, scheme, path, bytesIn } = exchange
  const headers = request?.headers ?? []
  const sent = headers.filter(({ name, isMasked }) => !isMasked && !made.has(name.toLowerCase()))
  const body = bodyOf(request?.body, bytesIn)
  const words = [
    `${body.pipe}curl`,
    // The path is sent unchanged, and the URL is not read as a pattern.
    '--path-as-is --globoff',
    `--request ${quote(method)}`,
    // `Name;` sends a header without a value; `Name:` would send none.
    ...sent.map(({ name, value }) => `--header ${quote(value === '' ? `${name};` : `${name}: ${value}`)}`),
    ...body.words,
    quote(`${scheme}://${authority}${path === '*' ? '/' : path}`),
  ]
  const masked = headers.filter(({ isMasked }) => isMasked).map(({ name }) => name)
  const notes = [
    ...(request ? [] : ['headers were not kept']),
    ...(masked.length > 0 ? [`masked: ${masked.join(', ')}`] : []),
    ...(bytesIn > (request?.body?.kept ?? 0) ? ['the body was not kept as a whole'] : []),
  ]
  return [...notes.map((note) => `# ${note.replaceAll(/[^ -~]/g, '?')}`), words.join(' \\\n  ')].join('\n')
}

/** How the body is passed to curl; `pipe` goes before the command. */
function bodyOf(
  body: KeptBody | undefined,
  bytesIn: number,
): { readonly pipe: string; readonly words: readonly string[] } {
  if (!body || bytesIn === 0) return { pipe: '', words: [] }
  // An argument ends at a NUL, and can hold only text.
  if (body.encoding === 'text' && !body.content.includes('\0')) {
    return { pipe: '', words: [`--data-raw ${quote(body.content)}`] }
  }
  const bytes = Buffer.from(body.content, body.encoding === 'text' ? 'utf8' : 'base64')
  return { pipe: `printf %s ${quote(bytes.toString('base64'))} | base64 -d | `, words: ['--data-binary @-'] }
}

/** One word of a POSIX shell; nothing is special within single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
