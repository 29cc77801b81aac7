import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { type VisitorErrorCode, visitorErrors } from '../../../model/visitor-errors.ts'
import { type ErrorPage, errorPages } from './error-page.ts'
import { htmlPage } from './html.ts'

const { forRequest: errorPage, plain } = errorPages()

const codes = Object.keys(visitorErrors) as VisitorErrorCode[] // the keys of that table

function ask(accept: string | undefined, { method = 'GET', type }: { method?: string; type?: string } = {}) {
  const headers = new HeaderList()
  if (accept !== undefined) headers.add('Accept', accept)
  if (type !== undefined) headers.add('Content-Type', type)
  return errorPage('BACKEND_OFFLINE', { method, headers })
}

describe('a visitor', () => {
  const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
  const cases: Record<string, [page: ReturnType<typeof ask>, type: string]> = {
    'with a browser gets HTML': [ask(browser), 'text/html; charset=utf-8'],
    'with a browser that requests only the head gets HTML': [
      ask(browser, { method: 'HEAD' }),
      'text/html; charset=utf-8',
    ],
    'with a browser that posts gets text': [ask(browser, { method: 'POST' }), 'text/plain; charset=utf-8'],
    'that accepts JSON gets JSON': [ask('application/json, */*'), 'application/json'],
    'that posts and accepts JSON gets JSON': [ask('application/json', { method: 'POST' }), 'application/json'],
    'that accepts anything gets text': [ask('*/*'), 'text/plain; charset=utf-8'],
    'without an Accept header gets text': [ask(undefined), 'text/plain; charset=utf-8'],
    'that speaks gRPC gets a status': [
      ask('*/*', { method: 'POST', type: 'application/grpc+proto' }),
      'application/grpc',
    ],
  }
  for (const [name, [{ head }, type]] of Object.entries(cases)) {
    test(name, () => assert.equal(head.headers.get('content-type'), type))
  }
})

describe('every error', () => {
  for (const code of codes) {
    test(`${code} names itself, is not stored and has its status, in every form`, () => {
      for (const [accept, type] of [['text/html'], ['application/json'], ['*/*'], ['*/*', 'application/grpc']]) {
        const headers = HeaderList.of([['accept', accept ?? '']])
        if (type) headers.add('content-type', type)
        const { head, body } = errorPage(code, { method: 'GET', headers })
        assert.equal(head.status, visitorErrors[code].status)
        assert.equal(head.headers.get('postern-error-code'), `ERR_${code}`)
        assert.equal(head.headers.get('ngrok-error-code'), `ERR_NGROK_${visitorErrors[code].ngrok}`)
        assert.equal(head.headers.get('cache-control'), 'no-store')
        assert.equal(head.body, type ? 'none' : body.length)
        if (!type) assert.ok(body.includes(`ERR_${code}`))
      }
    })
  }

  for (const code of ['EDGE_STARTING', 'LOOK_UP_BUSY', 'NODE_UNREACHABLE'] as const) {
    test(`${code} asks to come again in a second`, () => {
      const { head } = errorPage(code, { method: 'GET', headers: new HeaderList() })
      assert.deepEqual([head.status, head.headers.get('retry-after')], [503, '1'])
    })
  }

  test('is the same without the ngrok error number, except for that header, in every form', () => {
    const unnumbered = errorPages({ ngrokErrorHeader: false })
    const parts = ({ head, body }: ErrorPage) => ({ ...head, headers: [...head.headers], text: body.toString() })
    const stripped = (page: ErrorPage) => {
      page.head.headers.removeWhere(({ key }) => key === 'ngrok-error-code')
      return parts(page)
    }
    for (const code of codes) {
      assert.ok(plain(code).head.headers.has('ngrok-error-code'))
      assert.deepEqual(parts(unnumbered.plain(code)), stripped(plain(code)))
      for (const [accept, type] of [['text/html'], ['application/json'], ['*/*'], ['*/*', 'application/grpc']]) {
        const headers = HeaderList.of([['accept', accept ?? '']])
        if (type) headers.add('content-type', type)
        const request = { method: 'GET', headers }
        for (const id of [undefined, '0123abcd'])
          assert.deepEqual(parts(unnumbered.forRequest(code, request, id)), stripped(errorPage(code, request, id)))
      }
    }
  })

  test('with a request id has it in its head and its body, in every form', () => {
    for (const [accept, type] of [['text/html'], ['application/json'], ['*/*'], ['*/*', 'application/grpc']]) {
      const headers = HeaderList.of([['accept', accept ?? '']])
      if (type) headers.add('content-type', type)
      const { head, body } = errorPage('UPSTREAM_UNREACHABLE', { method: 'GET', headers }, '0123abcd')
      assert.equal(head.headers.get('postern-request-id'), '0123abcd')
      assert.equal(head.body, type ? 'none' : body.length)
      if (!type) assert.equal(body.toString().split('0123abcd').length, 2)
      assert.equal(
        errorPage('UPSTREAM_UNREACHABLE', { method: 'GET', headers }).head.headers.has('postern-request-id'),
        false,
      )
    }
    const { body } = errorPage(
      'NO_ROUTE',
      { method: 'GET', headers: HeaderList.of([['accept', 'application/json']]) },
      'r1',
    )
    assert.deepEqual(JSON.parse(body.toString()), {
      error_code: 'ERR_NO_ROUTE',
      msg: visitorErrors.NO_ROUTE.text,
      request_id: 'r1',
    })
  })

  test('is JSON with a code and a sentence', () => {
    assert.deepEqual(JSON.parse(ask('application/json').body.toString()), {
      error_code: 'ERR_BACKEND_OFFLINE',
      msg: visitorErrors.BACKEND_OFFLINE.text,
    })
  })

  test('is text with a sentence and a code', () => {
    assert.equal(plain('IP_REFUSED').body.toString(), `${visitorErrors.IP_REFUSED.text}\nERR_IP_REFUSED\n`)
  })

  test('that one request changed is unchanged for the next', () => {
    ask('*/*').head.headers.set('postern-error-code', 'changed')
    assert.equal(ask('*/*').head.headers.get('postern-error-code'), 'ERR_BACKEND_OFFLINE')
  })
})

describe('a gRPC client', () => {
  const cases: [VisitorErrorCode, status: string][] = [
    ['CREDENTIALS_REQUIRED', '16'],
    ['IP_REFUSED', '7'],
    ['BACKEND_OFFLINE', '14'],
    ['ENDPOINT_OFFLINE', '14'],
    ['UPSTREAM_TIMEOUT', '14'],
    ['BAD_VISITOR_REQUEST', '13'],
  ]
  for (const [code, status] of cases) {
    test(`reads status ${status} for ${code}`, () => {
      const headers = HeaderList.of([['Content-Type', 'application/grpc']])
      const { head } = errorPage(code, { method: 'POST', headers })
      assert.equal(head.headers.get('grpc-status'), status)
      const message = head.headers.get('grpc-message') ?? ''
      assert.match(message, /^[\x20-\x7e]+$/)
      assert.equal(decodeURIComponent(message), `${visitorErrors[code].text} ERR_${code}`)
    })
  }
})

describe('the HTML page', () => {
  test('escapes its contents', () => {
    const page = htmlPage({ status: 500, text: `<script>"&'`, name: '<b>' })
    assert.doesNotMatch(page, /<script|<b>/)
    assert.match(page, /&#60;script&#62;&#34;&#38;&#39;/)
  })

  test('needs nothing from elsewhere and runs nothing, and its policy allows its own style', () => {
    const { head, body } = ask('text/html')
    const page = body.toString()
    assert.doesNotMatch(page, /<script|<link|<img|<iframe|url\(|@import|https?:|\son\w+=/i)
    const [, style = ''] = /<style>(.*)<\/style>/s.exec(page) ?? []
    const hash = createHash('sha256').update(style).digest('base64')
    assert.ok(head.headers.get('content-security-policy')?.includes(`style-src 'sha256-${hash}'`))
  })

  test('can be read by a screen reader', () => {
    const page = ask('text/html').body.toString()
    assert.match(page, /<html lang="en">/)
    assert.match(page, /<main>/)
    assert.equal(page.match(/<h1>/g)?.length, 1)
    assert.match(page, /<svg [^>]*aria-hidden="true"/)
  })
})
