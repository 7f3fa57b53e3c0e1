// Draws a dashboard's panels with Grafana's own components: window.DASHBOARD over window.PROMETHEUS, window.FROM to window.TO.
// The panel of states is no part of @grafana/ui; its rows are drawn here, with Grafana's colours, words and units.
import React from 'react';
import { createRoot } from 'react-dom/client';
import {
  createTheme, applyFieldOverrides, FieldType, toDataFrame, getFieldDisplayValues, ThemeContext,
  FieldConfigOptionsRegistry, getDisplayProcessor, identityOverrideProcessor,
} from './node_modules/@grafana/data/dist/cjs/index.cjs';
import { TimeSeries, BigValue, Table, PanelChrome, PortalContainer, GlobalStyles } from './node_modules/@grafana/ui/dist/cjs/index.cjs';

import './node_modules/uplot/dist/uPlot.min.css';

const { DASHBOARD, PROMETHEUS, FROM, TO, STEP } = window;
const theme = createTheme({ colors: { mode: 'dark' } });
const CELL = 62, LINE = 34, GAP = 8;

const registry = new FieldConfigOptionsRegistry();
const register = (id, path, isCustom) => registry.register({
  id, path, name: id, isCustom, category: [], process: identityOverrideProcessor, shouldApply: () => true,
  override: (value) => value, editor: () => null,
});
for (const key of ['unit', 'min', 'max', 'decimals', 'displayName', 'color', 'thresholds', 'mappings', 'noValue', 'links']) register(key, key, false);
for (const key of ['drawStyle', 'lineWidth', 'fillOpacity', 'cellOptions', 'axisPlacement', 'axisSoftMin', 'axisSoftMax', 'lineInterpolation',
  'showPoints', 'pointSize', 'spanNulls', 'thresholdsStyle', 'scaleDistribution', 'hideFrom', 'stacking', 'gradientMode', 'align', 'filterable', 'minWidth'])
  register(`custom.${key}`, key, true);

async function ask(target) {
  const query = encodeURIComponent(target.expr);
  const path = target.instant ? `query?query=${query}&time=${TO}` : `query_range?query=${query}&start=${FROM}&end=${TO}&step=${STEP}`;
  const answer = await (await fetch(`${PROMETHEUS}/api/v1/${path}`)).json();
  if (answer.status !== 'success') throw new Error(answer.error);
  return answer.data.result;
}

const named = (labels, legend) => legend ? legend.replace(/{{\s*(\w+)\s*}}/g, (_, key) => labels[key] ?? '') : JSON.stringify(labels);

function frames(target, result) {
  if (target.format === 'table') {
    const keys = [...new Set(result.flatMap((one) => Object.keys(one.metric)))];
    return result.length === 0 ? [] : [toDataFrame({ fields: [
      { name: 'Time', type: FieldType.time, values: result.map((one) => one.value[0] * 1000) },
      ...keys.map((key) => ({ name: key, type: FieldType.string, values: result.map((one) => one.metric[key]) })),
      { name: 'Value', type: FieldType.number, values: result.map((one) => +one.value[1]) },
    ] })];
  }
  return result.map((one) => {
    const there = new Map((one.values || [one.value]).map(([at, value]) => [at, +value]));
    // A gap stays a gap: Prometheus leaves out the steps at which there was nothing.
    const steps = target.instant ? [...there.keys()] : Array.from({ length: Math.floor((TO - FROM) / STEP) + 1 }, (_, at) => FROM + at * STEP);
    const name = named(one.metric, target.legendFormat);
    return toDataFrame({ fields: [
      { name: 'Time', type: FieldType.time, values: steps.map((at) => at * 1000) },
      { name, type: FieldType.number, labels: one.metric, config: { displayNameFromDS: target.legendFormat && name }, values: steps.map((at) => there.get(at) ?? null) },
    ] });
  });
}

function organized(panel, frame) {
  const { excludeByName, indexByName, renameByName } = panel.transformations.find((one) => one.id === 'organize').options;
  const kept = frame.fields.filter((field) => !excludeByName[field.name] && field.name in indexByName);
  kept.sort((one, other) => (indexByName[one.name] ?? 99) - (indexByName[other.name] ?? 99));
  return toDataFrame({ fields: kept.map((field) => ({ ...field, name: renameByName[field.name] ?? field.name })) });
}

function States({ frames, width, height }) {
  const left = 110, row = height / frames.length;
  return <svg width={width} height={height} style={{ font: '11px sans-serif' }}>{frames.map((frame, at) => {
    const [time, field] = frame.fields, show = field.display ?? getDisplayProcessor({ field, theme });
    const runs = [];
    field.values.forEach((value, index) => {
      const last = runs[runs.length - 1];
      if (last && last.value === value) last.end = time.values[index]; else runs.push({ value, start: time.values[index], end: time.values[index] });
    });
    const x = (instant) => left + (width - left) * (instant / 1000 - FROM) / (TO - FROM + STEP);
    return <g key={at}><text x={0} y={(at + 0.62) * row} fill="#ccc">{field.config.displayNameFromDS || field.name}</text>
      {runs.filter((run) => run.value !== null).map((run) => {
        const shown = show(run.value), wide = x(run.end + STEP * 1000) - x(run.start);
        return <g key={run.start}><rect x={x(run.start)} y={at * row + 1} width={wide} height={row * 0.85} fill={shown.color} opacity={0.8} />
          {wide > 60 && row > 12 && <text x={x(run.start) + 4} y={(at + 0.6) * row} fill="#111">{shown.text}{shown.suffix}</text>}</g>;
      })}</g>;
  })}</svg>;
}

function Drawn({ panel, width, height }) {
  const [data, setData] = React.useState(null);
  React.useEffect(() => { (async () => {
    let found = [];
    for (const target of panel.targets) found = found.concat(frames(target, await ask(target)));
    if (panel.type === 'table') found = found.map((frame) => organized(panel, frame));
    setData(applyFieldOverrides({ data: found, fieldConfig: panel.fieldConfig, replaceVariables: (text) => text, theme, fieldConfigRegistry: registry, timeZone: 'utc' }));
  })(); }, []);
  const body = (inner, tall) => {
    if (!data) return <i>asking</i>;
    if (data.length === 0) return <div style={{ color: '#aaa', textAlign: 'center', paddingTop: tall / 3 }}>No data</div>;
    const range = { from: { valueOf: () => FROM * 1e3 }, to: { valueOf: () => TO * 1e3 }, raw: {} };
    if (panel.type === 'timeseries') return <TimeSeries frames={data} structureRev={1} width={inner} height={tall} timeZone="utc" timeRange={range} legend={panel.options.legend} options={panel.options} />;
    if (panel.type === 'state-timeline') return <States frames={data} width={inner} height={tall} />;
    if (panel.type === 'table') return <Table data={data[0]} width={inner} height={tall} />;
    const values = getFieldDisplayValues({ data, fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text, theme, timeZone: 'utc' });
    const across = Math.min(values.length, 5), down = Math.ceil(values.length / across);
    return <div style={{ display: 'flex', flexWrap: 'wrap' }}>{values.map((one, at) => <BigValue key={at} value={one.display} width={Math.floor(inner / across)} height={Math.floor(tall / down)}
      theme={theme} colorMode={panel.options.colorMode} graphMode="none" justifyMode="auto" textMode={values.length > 1 ? 'value_and_name' : panel.options.textMode} />)}</div>;
  };
  return <PanelChrome title={panel.title} width={width} height={height}>{body}</PanelChrome>;
}

const placed = ({ x, y, w, h }) => ({ position: 'absolute', left: x * CELL + GAP, top: 44 + y * LINE, width: w * CELL - GAP, height: h * LINE - GAP });
createRoot(document.getElementById('root')).render(<ThemeContext.Provider value={theme}>
  <GlobalStyles />
  <h3 style={{ font: '20px sans-serif', margin: '8px 12px' }}>{DASHBOARD.title}{window.ABOUT}</h3>
  {DASHBOARD.panels.map((panel) => panel.type === 'row'
    ? <div key={panel.id} style={{ ...placed(panel.gridPos), font: '16px sans-serif', paddingTop: 4 }}>{panel.title}</div>
    : <div key={panel.id} style={placed(panel.gridPos)}><Drawn panel={panel} width={panel.gridPos.w * CELL - GAP} height={panel.gridPos.h * LINE - GAP} /></div>)}
  <PortalContainer />
</ThemeContext.Provider>);
