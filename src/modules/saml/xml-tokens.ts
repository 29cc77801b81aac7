/** The tokens of an XML document without DTD and instructions; each is well-formed in itself, or the document is refused. */
import { BadInput } from '../../lib/shape/bad-input.ts'

type XmlToken = OpenTag | ReturnType<typeof closeTag>['token'] | Characters

export type OpenTag = ReturnType<typeof openTag>['token']

interface Characters {
  readonly kind: 'characters'
  readonly at: number
  /** Whether it is white space, which may also occur outside of the root. */
  readonly isBlank: boolean
  /** The text with references replaced. */
  readonly text: string
}

/** Throws `BadInput`, whose message can be shown. The lower half of xml.ts, which says why we read XML ourselves. */
export function* xmlTokens(text: string): Generator<XmlToken> {
  if (!ALLOWED.test(text)) throw new BadInput('a character of it is not allowed in XML')
  let at = match(PROLOG, text, 0)?.[0].length ?? 0
  while (at < text.length) {
    if (text.startsWith('<!--', at)) {
      at = afterComment(text, at)
    } else if (text.startsWith('<![CDATA[', at)) {
      const end = after(']]>', text, at)
      yield {
        kind: 'characters',
        at,
        isBlank: false,
        text: lines(text.slice(at + '<![CDATA['.length, end - ']]>'.length)),
      }
      at = end
    } else if (text.startsWith('<!', at)) {
      throw badXml(text, at, 'a DTD, with or without entities, is refused')
    } else if (text.startsWith('<?', at)) {
      throw badXml(text, at, 'only an XML declaration of version 1.0, at the very start, may begin with `<?`')
    } else if (text[at] === '<') {
      const { token, end } = text[at + 1] === '/' ? closeTag(text, at) : openTag(text, at)
      yield token
      at = end
    } else {
      const next = text.indexOf('<', at)
      const end = next < 0 ? text.length : next
      yield characters(text, at, end)
      at = end
    }
  }
}

/** An error that names the line. */
export function badXml(text: string, at: number, what: string): BadInput {
  return new BadInput(`line ${text.slice(0, at).split('\n').length}: ${what}`)
}

const SPACE = '[ \\t\\r\\n]'
/** XML 1.0 §2.3, without the colon (Namespaces in XML §3). */
const NAME_START =
  'A-Z_a-z\\u{c0}-\\u{d6}\\u{d8}-\\u{f6}\\u{f8}-\\u{2ff}\\u{370}-\\u{37d}\\u{37f}-\\u{1fff}\\u{200c}\\u{200d}\\u{2070}-\\u{218f}\\u{2c00}-\\u{2fef}\\u{3001}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{fffd}\\u{10000}-\\u{effff}'
const NAME = `[${NAME_START}][${NAME_START}\\-.0-9\\u{b7}\\u{300}-\\u{36f}\\u{203f}\\u{2040}]*`
const QUALIFIED = `(?:(?<prefix>${NAME}):)?(?<name>${NAME})`

const ALLOWED = /^[\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]*$/u
/** A byte order mark and the XML declaration. The encoding that it names is ignored: the text is already decoded. */
const PROLOG = pattern(
  `\\u{feff}?(?:<\\?xml${option('version', '1\\.0')}(?:${option('encoding', '[A-Za-z][A-Za-z0-9._\\-]*')})?(?:${option('standalone', 'yes|no')})?${SPACE}*\\?>)?`,
)
const OPEN = pattern(`<${QUALIFIED}`)
const ATTRIBUTE = pattern(`${SPACE}+${QUALIFIED}${SPACE}*=${SPACE}*(?:"(?<double>[^<"]*)"|'(?<single>[^<']*)')`)
const OPEN_END = pattern(`${SPACE}*(?<slash>/?)>`)
const CLOSE = pattern(`</(?<written>${QUALIFIED})${SPACE}*>`)
/** Bounded, so that a long row of `&` does not take quadratic time. */
const REFERENCE = /&(?:([a-z]{1,4})|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));|&/g
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', apos: "'", quot: '"' }

function option(name: string, value: string): string {
  return `${SPACE}+${name}${SPACE}*=${SPACE}*(?:"(?:${value})"|'(?:${value})')`
}

function pattern(source: string): RegExp {
  return new RegExp(source, 'uy')
}

function match(sticky: RegExp, text: string, at: number): RegExpExecArray | null {
  sticky.lastIndex = at
  return sticky.exec(text)
}

function openTag(text: string, at: number) {
  const start = match(OPEN, text, at)
  if (!start) throw badXml(text, at, '`<` begins no tag; the character itself is written `&lt;`')
  const attributes: { readonly prefix: string; readonly name: string; readonly value: string }[] = []
  let end = at + start[0].length
  for (let found = match(ATTRIBUTE, text, end); found; found = match(ATTRIBUTE, text, end)) {
    const { prefix = '', name = '', double, single } = found.groups ?? {}
    // XML 1.0 §3.3.3: white space in a value is a space, unless it is written as a reference.
    const raw = (double ?? single ?? '').replace(/\r\n|[\t\r\n]/g, ' ')
    attributes.push({ prefix, name, value: resolveReferences(text, end, raw) })
    end += found[0].length
  }
  const close = match(OPEN_END, text, end)
  if (!close)
    throw badXml(text, end, 'a tag is not well-formed here; attributes are `name="value"` with spaces between')
  const { prefix = '', name = '' } = start.groups ?? {}
  const isEmpty = close.groups?.slash === '/'
  // As it is written: the name with its prefix, which is empty for none; `isEmpty` when the tag closes itself.
  const token = { kind: 'open', at, written: start[0].slice(1), prefix, name, attributes, isEmpty } as const
  return { token, end: end + close[0].length }
}

function closeTag(text: string, at: number) {
  const found = match(CLOSE, text, at)
  if (!found) throw badXml(text, at, 'a closing tag is not well-formed')
  const token = { kind: 'close', at, written: found.groups?.written ?? '' } as const
  return { token, end: at + found[0].length }
}

function characters(text: string, at: number, end: number): Characters {
  const raw = text.slice(at, end)
  if (raw.includes(']]>')) throw badXml(text, at, '`]]>` closes no CDATA section; write `]]&gt;`')
  return { kind: 'characters', at, isBlank: /^[ \t\r\n]*$/.test(raw), text: resolveReferences(text, at, lines(raw)) }
}

/** XML 1.0 §2.11: every line break becomes one character. */
function lines(raw: string): string {
  return raw.replace(/\r\n?/g, '\n')
}

function afterComment(text: string, at: number): number {
  const end = after('--', text, at + '<!--'.length)
  if (text[end] !== '>') throw badXml(text, at, 'a comment holds `--`')
  return end + 1
}

function after(mark: string, text: string, at: number): number {
  const found = text.indexOf(mark, at)
  if (found < 0) throw badXml(text, at, `\`${mark}\` is missing`)
  return found + mark.length
}

/** `raw` with its references replaced by what they stand for. */
function resolveReferences(text: string, at: number, raw: string): string {
  return raw.replace(REFERENCE, (_, name?: string, decimal?: string, hex?: string) => {
    const known = name !== undefined && Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined
    const found = known ?? characterOf(decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal))
    if (found === undefined)
      throw badXml(text, at, '`&` begins no character reference and none of the five entities of XML')
    return found
  })
}

function characterOf(code: number): string | undefined {
  if (!(code <= 0x10ffff)) return undefined
  const character = String.fromCodePoint(code)
  return ALLOWED.test(character) ? character : undefined
}
