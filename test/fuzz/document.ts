/** The operations of a running platform, read from its own `/openapi.json`, with validators of their answers. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** The parts of a schema from which values are made. */
export interface DocumentSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, DocumentSchema>>
  readonly required?: readonly string[]
  readonly items?: DocumentSchema
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly 'x-max-bytes'?: number
}

export interface Operation {
  readonly name: string
  readonly method: string
  /** With parameters as `{id}`. */
  readonly path: string
  /** The id prefix of each path parameter. */
  readonly prefixes: Readonly<Record<string, string>>
  readonly body: DocumentSchema | undefined
  /** The prefix of the ids in a list; undefined when this is not a list. */
  readonly listed: string | undefined
  /** The only status of success. */
  readonly status: number
  /** Checks the body of a success; undefined when it has none. */
  readonly answer: ValidateFunction | undefined
}

interface Parameter {
  readonly name?: string
  readonly in?: string
  readonly description?: string
}

interface Described {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: DocumentSchema } } }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>
}

interface PathItem {
  readonly parameters: readonly Parameter[]
  readonly [method: string]: unknown
}

/** The operations of the last document: compiling its validators takes longer than a thousand calls. */
const last: { text: string; operations: readonly Operation[] } = { text: '', operations: [] }

export async function readDocument(url: string): Promise<readonly Operation[]> {
  const response = await fetch(new URL('/openapi.json', url))
  const text = await response.text()
  if (text !== last.text) Object.assign(last, { text, operations: operationsOf(text) })
  return last.operations
}

function operationsOf(text: string): readonly Operation[] {
  // The server's own document.
  const document = JSON.parse(text) as { paths: Record<string, PathItem> }
  // Optimizing the code of a validator takes as long as the rest of its compilation, and it runs a few times.
  const ajv = new Ajv2020({ strict: false, ownProperties: true, code: { optimize: false } })
  ajv.addSchema(document, 'api')
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== 'parameters')
      // Everything but the parameters is an operation.
      .map(([method, described]) => read(ajv, path, method, described as Described, item.parameters)),
  )
}

function read(
  ajv: Ajv2020,
  path: string,
  method: string,
  described: Described,
  shared: readonly Parameter[],
): Operation {
  const [status = ''] = Object.keys(described.responses).filter((each) => each !== 'default')
  const steps = ['paths', path, method, 'responses', status, 'content', 'application/json', 'schema']
  const pointer = steps.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
  return {
    name: described.operationId,
    method: method.toUpperCase(),
    path,
    prefixes: Object.fromEntries(
      shared.filter((each) => each.in === 'path').map((each) => [each.name, prefixOf(each)]),
    ),
    body: described.requestBody?.content['application/json'].schema,
    listed: described.parameters?.filter(({ name }) => name === 'before_id').map(prefixOf)[0],
    status: Number(status),
    answer: described.responses[status]?.content?.['application/json']
      ? ajv.compile({ $ref: `api#/${pointer}` })
      : undefined,
  }
}

/** The description of a parameter has the prefix, except for the only parent in a path, an HTTPS edge. */
function prefixOf({ name, description = '' }: Parameter): string {
  return name === 'edge_id' ? 'edghts_' : (/`(\w+_)…`/.exec(description)?.[1] ?? '')
}
