/** What the API can do, read from its document: every resource with its forms, commands and modules. */

import { isRecord } from './api-caller.ts'
import { type FormSchema, formSchema } from './form-schema.ts'
import { textIn } from './text-in.ts'

/** A kind of resource. */
export interface ResourceKind {
  /** As in the document: `/edges/https/{edge_id}/routes`. */
  readonly path: string
  /** `HTTPS edges`. */
  readonly title: string
  readonly about: string
  readonly canList: boolean
  readonly canDelete: boolean
  readonly create: FormSchema | undefined
  /** `Create an HTTPS edge`. */
  readonly createTitle: string
  readonly update: FormSchema | undefined
  readonly view: FormSchema
  /** What an agent can be told: `restart`. */
  readonly commands: readonly string[]
  /** In the order of execution. */
  readonly modules: readonly ModuleKind[]
  /** The fields of bodies that set a module, in every spelling. */
  readonly moduleFields: ReadonlySet<string>
}

/** A module as one kind of resource has it. */
export interface ModuleKind {
  readonly name: string
  readonly form: FormSchema
}

export interface ApiOutline {
  readonly kinds: readonly ResourceKind[]
  /** What `POST /policy/explain` takes. */
  readonly explain: FormSchema | undefined
  readonly policyWords: readonly PolicyWord[]
  /** Every path of the document. */
  readonly paths: ReadonlySet<string>
}

/** Something that can stand in a policy. */
export interface PolicyWord {
  readonly word: string
  readonly what: 'action' | 'variable' | 'function'
}

type Node = Readonly<Record<string, unknown>>

export function outlineOf(document: unknown): ApiOutline {
  const root = node(document)
  const paths = new Map(Object.entries(node(root.paths)).map(([path, item]) => [path, node(item)]))
  const resolve = (schema: unknown): unknown => {
    const name = /^#\/components\/schemas\/(\w+)$/.exec(textIn(node(schema).$ref))?.[1]
    return name === undefined ? schema : node(node(root.components).schemas)[name]
  }
  const abouts = new Map(list(root.tags).map((tag) => [textIn(node(tag).name), textIn(node(tag).description ?? '')]))
  const order = list(root['x-modules']).map(String)
  const kinds = [...paths.keys()]
    .filter((path) => !path.endsWith('}') && paths.has(`${path}/{id}`))
    .map((path): ResourceKind => {
      const [all, one] = [paths.get(path) ?? {}, paths.get(`${path}/{id}`) ?? {}]
      const title = textIn(list(node(one.get).tags)[0] ?? path)
      const view = formSchema(resolve(answerOf(one.get)))
      const below = [...paths].filter(([each]) => each.startsWith(`${path}/{id}/`))
      const named = below.map(([each, item]) => ({ name: each.slice(`${path}/{id}/`.length), item }))
      return {
        path,
        title,
        about: abouts.get(title) ?? '',
        canList: all.get !== undefined,
        canDelete: one.delete !== undefined,
        create: bodyOf(all.post),
        createTitle: textIn(node(all.post).summary ?? ''),
        update: bodyOf(one.patch),
        view,
        commands: named.filter(({ item }) => item.post !== undefined).map(({ name }) => name),
        modules: named
          // Another spelling of a module can be sent, and is not shown.
          .filter(({ name, item }) => item.put !== undefined && view.fields?.has(name))
          .map(({ name, item }) => ({ name, form: bodyOf(item.put) ?? formSchema({}) }))
          .toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name)),
        moduleFields: new Set(named.filter(({ item }) => item.put !== undefined).map(({ name }) => name)),
      }
    })
  return {
    kinds,
    explain: bodyOf(paths.get('/policy/explain')?.post),
    policyWords: policyWords(node(root['x-policy'])),
    paths: new Set(paths.keys()),
  }
}

/** A resource kind and the ids that a path of the API names. */
export interface FoundKind {
  readonly kind: ResourceKind
  /** The path of the list: `/edges/https/edghts_1/routes`. */
  readonly listPath: string
  /** Empty for the list. */
  readonly id: string
}

/** Which resources live at a path of the API. */
export function kindAt({ kinds }: Pick<ApiOutline, 'kinds'>, path: string): FoundKind | undefined {
  const parts = path.split('/')
  for (const kind of kinds) {
    const template = kind.path.split('/')
    const extra = parts.length - template.length
    if (extra !== 0 && extra !== 1) continue
    if (!template.every((part, i) => part === parts[i] || (part.startsWith('{') && parts[i] !== ''))) continue
    return { kind, listPath: parts.slice(0, template.length).join('/'), id: parts[template.length] ?? '' }
  }
  return undefined
}

function bodyOf(operation: unknown): FormSchema | undefined {
  const schema = schemaOf(node(operation).requestBody)
  return schema === undefined ? undefined : formSchema(schema)
}

function answerOf(operation: unknown): unknown {
  return schemaOf(node(node(operation).responses)['200'])
}

function schemaOf(part: unknown): unknown {
  return node(node(node(part).content)['application/json']).schema
}

function policyWords(words: Node): PolicyWord[] {
  const kinds = ['action', 'variable', 'function'] as const
  return kinds.flatMap((what) => list(words[`${what}s`]).map((word) => ({ word: textIn(word), what })))
}

function node(value: unknown): Node {
  return isRecord(value) ? value : {}
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
