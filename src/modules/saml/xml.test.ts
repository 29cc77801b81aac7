import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readXml } from './xml.ts'

const accepted: Record<string, string> = {
  'an empty element': '<a/>',
  'a declaration': '<?xml version="1.0"?>\n<a/>',
  'a full declaration in single quotes': `<?xml version = '1.0' encoding='utf-8'\tstandalone='no' ?><a/>`,
  'a byte order mark': '\ufeff<?xml version="1.0"?><a/>',
  'comments inside and outside': '<!-- a - b --><a><!----></a>\n<!-- end -->\n',
  'a CDATA section': '<a><![CDATA[<b>&c;]]]]></a>',
  'entities and references': '<a b="&lt;&gt;&amp;&apos;&quot;&#9;&#x1F600;">&#65;]] ></a>',
  'spaces where they may be': '<a\n b = "1"\tc=\'"\' ><b /></a >',
  'names in other scripts': '<größe 名前="x"><_.-·/></größe>',
  'namespaces that are declared further out': '<a xmlns:p="u"><p:b p:c="1" c="2"/></a>',
  'a default namespace that is given up': '<a xmlns="u"><b xmlns=""/></a>',
  'the prefix xml, declared or not': '<a xml:lang="de" xmlns:xml="http://www.w3.org/XML/1998/namespace"/>',
  'elements 32 deep': `${'<a>'.repeat(32)}${'</a>'.repeat(32)}`,
}

for (const [what, text] of Object.entries(accepted)) {
  test(`reads ${what}`, () => {
    readXml(text)
  })
}

const refused: Record<string, readonly [message: RegExp, ...texts: readonly string[]]> = {
  'no element': [/no element/, '', ' ', '<!-- a -->', '<?xml version="1.0"?>'],
  'a DTD': [
    /DTD/,
    '<!DOCTYPE a><a/>',
    '<!doctype a><a/>',
    '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    '<a><!ENTITY b "c"></a>',
  ],
  'a DTD that hides behind a comment or a byte order mark': [
    /DTD/,
    '<!-- --><!DOCTYPE a><a/>',
    '\ufeff<!DOCTYPE a><a/>',
  ],
  'instructions, and declarations that are late or of another version': [
    /`<\?`/,
    '<?php x?><a/>',
    '<a><?xml-stylesheet href="x"?></a>',
    ' <?xml version="1.0"?><a/>',
    '<?xml version="1.1"?><a/>',
    '<?xml encoding="utf-8"?><a/>',
    '<?xml version="1.0"encoding="utf-8"?><a/>',
    '<?XML version="1.0"?><a/>',
    '<?xml version="1.0"?><?xml version="1.0"?><a/>',
  ],
  'entities that are not of XML': [
    /five entities/,
    '<a>&b;</a>',
    '<a>&nbsp;</a>',
    '<a>&</a>',
    '<a>&amp</a>',
    '<a b="&c;"/>',
    '<a>&constructor;</a>',
    '<a>&LT;</a>',
  ],
  'references to what is no character': [
    /five entities/,
    '<a>&#0;</a>',
    '<a>&#xD800;</a>',
    '<a>&#x110000;</a>',
    '<a>&#xFFFE;</a>',
    '<a>&#x1;</a>',
    '<a>&#;</a>',
    '<a>&#x;</a>',
    '<a>&#xg;</a>',
    '<a>&#99999999999;</a>',
  ],
  'characters that XML does not have': [
    /character/,
    '<a>\u0001</a>',
    '<a>\u000b</a>',
    '<a>\ufffe</a>',
    '<a b="\u001f"/>',
  ],
  'tags that do not fit': [
    /closing tag does not match/,
    '<a></b>',
    '<a><b></a></b>',
    '</a>',
    '<p:a xmlns:p="u"></a>',
    '<a/></a>',
    '<a></a\ufeff>',
  ],
  'an end that comes too soon': [/ends before/, '<a>', '<a><b/>', '<a>text'],
  'what comes after the end': [/more than one root/, '<a/><b/>', '<a></a><a></a>'],
  'text outside': [/outside/, 'x<a/>', '<a/>x', '<a/>&#32;', '<![CDATA[]]><a/>', '\u00a0<a/>'],
  'tags that are not well-formed': [
    /tag|`<`/,
    '<a',
    '<a b>',
    '<a b=1/>',
    '<a b="1"c="2"/>',
    '<a b="<"/>',
    '<a b="1',
    '<a / >',
    '<a/ >',
    '< a/>',
    '<1/>',
    '<a:/>',
    '<:a/>',
    '<a:b:c/>',
    '<a></ a>',
    '<a></a',
    '<>',
    '<a>a < b</a>',
  ],
  'comments and sections that do not end, or end too soon': [
    /missing|`--`/,
    '<a><!-- ',
    '<a><!-- a -- b --></a>',
    '<a><!--></a>',
    '<a><!---></a>',
    '<a><!-- --->',
    '<a><![CDATA[ ]]',
  ],
  'the end of a section that did not begin': [/`]]>`/, '<a>]]></a>'],
  'an attribute twice, by whatever prefix': [
    /same attribute twice/,
    '<a b="1" b="2"/>',
    '<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>',
  ],
  'prefixes that nobody declares': [/prefix/, '<p:a/>', '<a p:b="1"/>', '<a><b xmlns:p="u"/><p:c/></a>'],
  'namespaces that cannot be declared': [
    /namespace/,
    '<a xmlns:p=""/>',
    '<a xmlns:xmlns="u"/>',
    '<a xmlns:xml="u"/>',
    '<a xmlns:p="http://www.w3.org/XML/1998/namespace"/>',
    '<a xmlns="http://www.w3.org/2000/xmlns/"/>',
    '<a xmlns="u" xmlns="u"/>',
    '<a xmlns:p="u" xmlns:p="v"/>',
  ],
  'elements that are nested too deep': [/32 deep/, `${'<a>'.repeat(33)}${'</a>'.repeat(33)}`],
  'more elements than anybody needs': [/10000 elements/, `<a>${'<b/>'.repeat(10_000)}</a>`],
}

for (const [what, [message, ...texts]] of Object.entries(refused)) {
  test(`refuses ${what}`, () => {
    for (const text of texts) assert.throws(() => readXml(text), { name: 'BadInput', message }, text.slice(0, 100))
  })
}

test('tells elements and attributes apart by namespace, and replaces references in values', () => {
  const text = `<p:a xmlns:p="u" xmlns="v" b=" 1&#10;2\r\n3 " p:b='"'>text<c/><p:c xmlns:p="w"/></p:a>`
  assert.deepEqual(readXml(text), {
    namespace: 'u',
    name: 'a',
    attributes: new Map([
      ['b', ' 1\n2 3 '],
      ['{u}b', '"'],
    ]),
    children: [
      { namespace: 'v', name: 'c', attributes: new Map(), children: [], text: '' },
      { namespace: 'w', name: 'c', attributes: new Map(), children: [], text: '' },
    ],
    text: 'text',
  })
})

test('reads text with references replaced and comments left out', () => {
  assert.equal(
    readXml('<a>1&lt;\r\n<b>not mine</b>&#x41;<!-- nor this --><![CDATA[<&amp;\r]]></a>').text,
    '1<\nA<&amp;\n',
  )
})

test('a message names the line', () => {
  assert.throws(() => readXml('<a>\n<b>\n</a>'), { message: /^line 3: / })
})

/** Texts that take minutes in a reader that backtracks or looks ahead repeatedly. */
const slow: Record<string, string> = {
  'a row of `&`': `<a>${'&'.repeat(250_000)}</a>`,
  'a row of `&#x`': `<a>${'&#x'.repeat(80_000)}</a>`,
  'spaces in a tag': `<a${' '.repeat(250_000)}`,
  'attributes without end': `<a ${'b="" '.repeat(50_000)}`,
  'a long name': `<${'a'.repeat(250_000)}`,
  'a name of many colons': `<a ${'b:'.repeat(120_000)}="1"/>`,
  'dashes in a comment': `<!-- ${'- '.repeat(120_000)}`,
  'many tags that nobody closes': '<a>'.repeat(80_000),
  'many prefixes, and many elements that declare one more': `<a ${Array.from({ length: 8000 }, (_, i) => `xmlns:p${i}="u"`).join(' ')}>${'<b xmlns:q="u"/>'.repeat(5000)}`,
}

for (const [what, text] of Object.entries(slow)) {
  test(`is quick to refuse ${what}`, () => {
    const from = performance.now()
    assert.throws(() => readXml(text), { name: 'BadInput' })
    assert.ok(performance.now() - from < 10_000, `${Math.round(performance.now() - from)} ms`)
  })
}
