/** A field of a form, made from its schema: one input, or several in a frame. */
import { useState } from 'preact/hooks'
import { isRecord } from './api-caller.ts'
import { type Draft, emptyDraft, isFaultAt } from './draft.ts'
import type { FormSchema } from './form-schema.ts'
import { HelpText } from './help-text.tsx'
import { policyPartAt } from './policy-part.ts'
import { PolicyWordsField } from './policy-words-field.tsx'
import { ReferenceChoices } from './reference-list.tsx'
import { textIn } from './text-in.ts'

interface FieldFault {
  readonly field: string
  readonly text: string
}

interface SchemaFieldProps {
  readonly schema: FormSchema
  /** What people see; the path is unique in its form. */
  readonly name: string
  readonly path: string
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly isRequired: boolean
  readonly fault: FieldFault | undefined
}

/** Texts that may be longer than this get more than one line, in characters. */
const LONG = 512

/** Fields whose text never has several lines, however long it may be. */
const ONE_LINE = /(^|_)(id|url|uri|issuer|prefix|name|secret|password)$/

export function SchemaField(props: SchemaFieldProps) {
  const { type, fields, entries } = props.schema
  if (type === 'object' && fields) return <ObjectField {...props} fields={fields} />
  if (type === 'array' && entries) return <ListField {...props} entries={entries} />
  if (type === 'object' && entries?.type !== undefined) return <MapField {...props} entries={entries} />
  if (type === undefined || type === 'object' || type === 'array') return <JsonField {...props} />
  if (type === 'boolean') return <BooleanField {...props} />
  return <TextField {...props} />
}

function TextField({ schema, name, path, value, onChange, isRequired, fault }: SchemaFieldProps) {
  const { words, maxLength, type } = schema
  const shared = {
    id: `field-${path}`,
    required: isRequired,
    ...describeField(path, schema, fault),
  }
  const isNumber = type === 'integer' || type === 'number'
  const text = value === undefined ? '' : textIn(value)
  const change = (next: string) => {
    if (next === '') onChange(undefined)
    else onChange(isNumber && Number.isFinite(Number(next)) ? Number(next) : next)
  }
  const part = policyPartAt(path)
  const choices = choicesFor(path)
  const listed = choices.length > 0 ? { type: 'text' as const, list: `choices-${path}` } : {}
  const isLong = (maxLength ?? 0) > LONG && choices.length === 0 && !ONE_LINE.test(name)
  const hint = schema.default === undefined || schema.default === '' ? '' : textIn(schema.default)
  return (
    <div class="field">
      <label for={shared.id}>
        {name}
        {isRequired && <span class="soft"> (required)</span>}
      </label>
      {part ? (
        <PolicyWordsField part={part} text={text} onChange={change} shared={shared} />
      ) : words ? (
        <select {...shared} value={text} onChange={({ currentTarget }) => change(currentTarget.value)}>
          {!words.includes('') && <option value="">{hint === '' ? '–' : `default: ${hint}`}</option>}
          {words.map((word) => (
            <option key={word} value={textIn(word)}>
              {word === '' ? '–' : word}
            </option>
          ))}
        </select>
      ) : isLong ? (
        <textarea
          {...shared}
          rows={3}
          spellcheck={false}
          placeholder={hint}
          value={text}
          onInput={({ currentTarget }) => change(currentTarget.value)}
        />
      ) : (
        <input
          {...shared}
          {...(/secret|password/.test(name) ? { type: 'password' as const } : listed)}
          inputMode={isNumber ? 'decimal' : 'text'}
          autoComplete="off"
          spellcheck={false}
          placeholder={hint}
          value={text}
          onInput={({ currentTarget }) => change(currentTarget.value)}
        />
      )}
      {choices.length > 0 && <ReferenceChoices id={`choices-${path}`} lists={choices} />}
      <About path={path} schema={schema} fault={fault} isLeaf />
    </div>
  )
}

function BooleanField({ schema, name, path, value, onChange, fault }: SchemaFieldProps) {
  const isOn = typeof value === 'boolean' ? value : schema.default === true
  return (
    <div class="field">
      <label class="check">
        <input
          type="checkbox"
          id={`field-${path}`}
          checked={isOn}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
          {...describeField(path, schema, fault)}
        />
        {name}
      </label>
      <About path={path} schema={schema} fault={fault} isLeaf />
    </div>
  )
}

function ObjectField(props: SchemaFieldProps & { readonly fields: ReadonlyMap<string, FormSchema> }) {
  const { schema, name, path, value, onChange, isRequired, fault, fields } = props
  const isSet = isRequired || isRecord(value)
  return (
    <fieldset>
      <legend>{name}</legend>
      <About path={path} schema={schema} fault={fault} />
      {!isRequired && (
        <label class="check">
          <input
            type="checkbox"
            checked={isSet}
            onChange={({ currentTarget }) => onChange(currentTarget.checked ? {} : undefined)}
          />
          set {name}
        </label>
      )}
      {isSet && (
        <ObjectFields
          schema={schema}
          fields={fields}
          path={path}
          value={isRecord(value) ? value : {}}
          onChange={onChange}
          fault={fault}
        />
      )}
    </fieldset>
  )
}

interface ObjectFieldsProps extends Pick<SchemaFieldProps, 'schema' | 'fault'> {
  readonly fields: ReadonlyMap<string, FormSchema>
  /** Empty for the whole form. */
  readonly path: string
  readonly value: Draft
  readonly onChange: (value: Draft) => void
}

/** The fields of an object, without a frame. */
export function ObjectFields({ schema, fields, path, value, onChange, fault }: ObjectFieldsProps) {
  return (
    <>
      {[...fields].map(([name, field]) => (
        <SchemaField
          key={name}
          schema={field}
          name={name}
          path={path === '' ? name : `${path}.${name}`}
          value={value[name]}
          onChange={(next) => onChange(withField(value, name, next))}
          isRequired={schema.required.has(name)}
          fault={fault}
        />
      ))}
    </>
  )
}

function withField(draft: Draft, name: string, value: unknown): Draft {
  const { [name]: _, ...rest } = draft
  if (value === undefined) return rest
  return name in draft ? { ...draft, [name]: value } : { ...rest, [name]: value }
}

function ListField(props: SchemaFieldProps & { readonly entries: FormSchema }) {
  const { schema, name, path, value, onChange, fault, entries } = props
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return (
    <fieldset>
      <legend>
        {name}
        {props.isRequired && <span class="soft"> (required)</span>}
      </legend>
      <About path={path} schema={schema} fault={fault} />
      {list.map((each, i) => (
        <div class="entry" key={i}>
          <SchemaField
            schema={entries}
            name={`${name} ${i + 1}`}
            path={`${path}[${i}]`}
            value={each}
            onChange={(next) => onChange(list.with(i, next ?? emptyDraft(entries)))}
            isRequired
            fault={fault}
          />
          <button type="button" class="quiet" onClick={() => onChange(list.toSpliced(i, 1))}>
            Remove {name} {i + 1}
          </button>
        </div>
      ))}
      <button type="button" onClick={() => onChange([...list, emptyDraft(entries)])}>
        Add to {name}
      </button>
    </fieldset>
  )
}

function MapField(props: SchemaFieldProps & { readonly entries: FormSchema }) {
  const { schema, name, path, value, onChange, fault, entries } = props
  const pairs = Object.entries(isRecord(value) ? value : {})
  const changePairs = (next: readonly (readonly [string, unknown])[]) => onChange(Object.fromEntries(next))
  return (
    <fieldset>
      <legend>
        {name}
        {props.isRequired && <span class="soft"> (required)</span>}
      </legend>
      <About path={path} schema={schema} fault={fault} />
      {pairs.map(([key, each], i) => (
        <div class="entry pair" key={i}>
          <div class="field">
            <label for={`key-${path}-${i}`}>Name {i + 1}</label>
            <input
              id={`key-${path}-${i}`}
              value={key}
              spellcheck={false}
              onInput={({ currentTarget }) => changePairs(pairs.with(i, [currentTarget.value, each]))}
            />
          </div>
          <SchemaField
            schema={entries}
            name={`Value ${i + 1}`}
            path={`${path}[${JSON.stringify(key)}]`}
            value={each}
            onChange={(next) => changePairs(pairs.with(i, [key, next ?? emptyDraft(entries)]))}
            isRequired
            fault={fault}
          />
          <button type="button" class="quiet" onClick={() => changePairs(pairs.toSpliced(i, 1))}>
            Remove entry {i + 1}
          </button>
        </div>
      ))}
      <button
        type="button"
        disabled={pairs.some(([key]) => key === '')}
        onClick={() => changePairs([...pairs, ['', emptyDraft(entries)]])}
      >
        Add to {name}
      </button>
    </fieldset>
  )
}

function JsonField({ schema, name, path, value, onChange, isRequired, fault }: SchemaFieldProps) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2))
  const change = (field: HTMLTextAreaElement) => {
    setText(field.value)
    const parsed = parseJson(field.value)
    field.setCustomValidity(parsed.isValid ? '' : 'This is not valid JSON.')
    if (parsed.isValid) onChange(parsed.value)
  }
  return (
    <div class="field">
      <label for={`field-${path}`}>{name} (JSON)</label>
      <textarea
        id={`field-${path}`}
        rows={4}
        spellcheck={false}
        required={isRequired}
        value={text}
        onInput={({ currentTarget }) => change(currentTarget)}
        {...describeField(path, schema, fault)}
      />
      <About path={path} schema={schema} fault={fault} isLeaf />
    </div>
  )
}

function parseJson(text: string): { readonly isValid: boolean; readonly value?: unknown } {
  if (text.trim() === '') return { isValid: true, value: undefined }
  try {
    return { isValid: true, value: JSON.parse(text) as unknown }
  } catch {
    return { isValid: false }
  }
}

interface AboutProps extends Pick<SchemaFieldProps, 'path' | 'schema' | 'fault'> {
  /** Whether faults of nested fields are shown here, since those have no inputs of their own. */
  readonly isLeaf?: boolean
}

/** The help text of a field, and what is wrong with it. */
function About({ path, schema: { description }, fault, isLeaf = false }: AboutProps) {
  const isFault = fault !== undefined && isFaultAt(fault.field, path, isLeaf)
  return (
    <>
      {description !== '' && (
        <p class="help" id={`help-${path}`}>
          <HelpText text={description} />
        </p>
      )}
      {isFault && (
        <p class="field-fault" id={`fault-${path}`}>
          <HelpText text={fault.text} />
        </p>
      )}
    </>
  )
}

/** Attributes that point screen readers to the texts of `About`. */
function describeField(path: string, { description }: FormSchema, fault: FieldFault | undefined) {
  const isFault = fault !== undefined && isFaultAt(fault.field, path, true)
  const ids = [description === '' ? '' : `help-${path}`, isFault ? `fault-${path}` : ''].filter((id) => id !== '')
  return {
    ...(ids.length > 0 && { 'aria-describedby': ids.join(' ') }),
    ...(isFault && { 'aria-invalid': 'true' as const }),
  }
}

/** Which resources a field of a form refers to, so that their ids can be offered. */
const backends = [
  '/backends/tunnel_group',
  '/backends/static',
  '/backends/http_response',
  '/backends/weighted',
  '/backends/failover',
]

/** The lists of the API by the name of the field. */
const lists: Readonly<Record<string, readonly string[]>> = {
  backend_id: backends,
  backends,
  ip_policy_id: ['/ip_policies'],
  ip_policy_ids: ['/ip_policies'],
  certificate_authority_ids: ['/certificate_authorities'],
  certificate_id: ['/tls_certificates'],
  ssh_certificate_authority_id: ['/ssh_certificate_authorities'],
  // Of a capture, which is only for HTTP.
  edge_id: ['/edges/https'],
  endpoint_id: ['/endpoints'],
}

/** `path` is that of the field in its form, such as `ip_policy_ids[0]`. */
function choicesFor(path: string): readonly string[] {
  const [, name = ''] = /(\w+)(\[[^\]]*\])?$/.exec(path) ?? []
  return Object.hasOwn(lists, name) ? (lists[name] ?? []) : []
}
