/** A strict reader of small XML documents: well-formed to the last character, namespaces too, or refused. */
import type { BadInput } from '../../lib/shape/bad-input.ts'
import { badXml, type OpenTag, xmlTokens } from './xml-tokens.ts'

/** One element; names are compared by namespace, whatever prefix the document writes. */
export interface XmlElement {
  /** Empty for none. */
  readonly namespace: string
  readonly name: string
  /** By name, or `{namespace}name` for one in a namespace. */
  readonly attributes: ReadonlyMap<string, string>
  readonly children: readonly XmlElement[]
  /** The characters directly inside it, without those of its children. */
  readonly text: string
}

const MAX_DEPTH = 32
const MAX_ELEMENTS = 10_000

/** Namespaces in XML §3: these two have fixed prefixes. */
const XML = 'http://www.w3.org/XML/1998/namespace'
const XMLNS = 'http://www.w3.org/2000/xmlns/'

/**
 * The root of the document; throws `BadInput`, whose message can be shown.
 *
 * Written by hand: Node has no reader of XML, and the one that the SAML library brings repairs what is broken. A document
 * that two readers understand differently is how signatures are forged. So this reader takes no DTD, no instructions, and
 * nothing that is not well-formed. Signatures are verified by the library, never here.
 */
export function readXml(text: string): XmlElement {
  const open: Open[] = []
  let root: XmlElement | undefined
  let count = 0
  for (const token of xmlTokens(text)) {
    const bad = (what: string): BadInput => badXml(text, token.at, what)
    const inner = open.at(-1)
    if (token.kind === 'characters') {
      if (!inner && !token.isBlank) throw bad('text is outside of the root element')
      if (inner) inner.element.text += token.text
      continue
    }
    if (token.kind === 'close') {
      if (inner?.written !== token.written) throw bad('a closing tag does not match the open element')
      open.pop()
      continue
    }
    if (root && !inner) throw bad('there is more than one root element')
    if (open.length === MAX_DEPTH) throw bad(`elements are nested more than ${MAX_DEPTH} deep`)
    count += 1
    if (count > MAX_ELEMENTS) throw bad(`there are more than ${MAX_ELEMENTS} elements`)
    const scope = { declared: declarations(token, bad), outer: inner?.scope }
    const element: Growing = { ...expandTag(token, scope, bad), children: [], text: '' }
    if (inner) inner.element.children.push(element)
    else root = element
    if (!token.isEmpty) open.push({ written: token.written, scope, element })
  }
  if (open.length > 0) throw badXml(text, text.length, 'it ends before its elements are closed')
  if (!root) throw badXml(text, text.length, 'it holds no element')
  return root
}

/** An element that is not closed yet. */
interface Open {
  readonly written: string
  readonly scope: Scope
  readonly element: Growing
}

interface Growing extends XmlElement {
  readonly children: XmlElement[]
  text: string
}

/** The prefixes that an element declares, linked to those of its parent. Copying them would make long documents slow. */
interface Scope {
  readonly declared: ReadonlyMap<string, string>
  readonly outer: Scope | undefined
}

type Bad = (what: string) => BadInput

function declarations({ attributes }: OpenTag, bad: Bad): Map<string, string> {
  const declared = new Map<string, string>()
  for (const { prefix, name, value } of attributes) {
    if (!declares(prefix, name)) continue
    const given = prefix === '' ? '' : name
    if (declared.has(given)) throw bad('a namespace is declared twice')
    const isReserved = given === 'xmlns' || value === XMLNS || (given === 'xml') !== (value === XML)
    if (isReserved || (given !== '' && value === '')) throw bad('a declaration uses a reserved or empty namespace')
    declared.set(given, value)
  }
  return declared
}

function declares(prefix: string, name: string): boolean {
  return prefix === 'xmlns' || (prefix === '' && name === 'xmlns')
}

function expandTag(tag: OpenTag, scope: Scope, bad: Bad): Omit<XmlElement, 'children' | 'text'> {
  const attributes = new Map<string, string>()
  for (const { prefix, name, value } of tag.attributes) {
    if (declares(prefix, name)) continue
    // An attribute without a prefix is in no namespace, whatever the default is.
    const key = prefix === '' ? name : `{${namespaceOf(prefix, scope, bad)}}${name}`
    if (attributes.has(key)) throw bad('an element has the same attribute twice')
    attributes.set(key, value)
  }
  return { namespace: namespaceOf(tag.prefix, scope, bad), name: tag.name, attributes }
}

function namespaceOf(prefix: string, scope: Scope, bad: Bad): string {
  if (prefix === 'xml') return XML
  for (let each: Scope | undefined = scope; each; each = each.outer) {
    const namespace = each.declared.get(prefix)
    if (namespace !== undefined) return namespace
  }
  if (prefix === '') return ''
  throw bad('a prefix is used that no `xmlns` declares')
}
