#!/usr/bin/perl
# The rules of docs/design.md, held over the source tree: the floors and rooms that each may include, how large a file
# may be, how headers are guarded, that calls between files form no circle; and the names in its list of where to
# change.
use strict;
use warnings;
use File::Basename;

my $root = $ENV{abs_top_srcdir} // dirname($0) . "/..";
chdir $root or die "$root: $!";

# Floors, and the floors whose headers they may include. Tests may include all.
my %below = (
    base    => [qw(base)],
    kernels => [qw(kernels base)],
    mpi     => [qw(mpi base)],
    io      => [qw(io base)],
    src     => [qw(src kernels mpi io base)],
);
$below{tests} = [keys %below, "tests"];

# Rooms of a floor, and the rooms of the same floor whose headers they may include; "." is the floor's own folder. A
# room may always include its own headers. A room that is not listed may include all.
my %inside = (
    src => {
        "."       => [qw(stream rates start exchange summary plan)],
        start     => [],
        stream    => [],
        exchange  => [qw(stream)],
        rates     => [qw(stream exchange)],
        plan      => [qw(. stream rates)],
        summary   => [qw(stream)],
        matmul    => [qw(. stream rates exchange)],
        reduce    => [qw(. stream rates)],
        normalize => [qw(. stream rates reduce)],
        move      => [qw(. stream rates)],
        bench     => [qw(. stream exchange)],
    },
    io => {
        "."      => [],
        virtual  => [qw(.)],
        describe => [qw(. virtual)],
        read     => [qw(. virtual describe)],
        write    => [qw(. virtual describe read)],
        bench    => [qw(. describe read write)],
    },
);

# Limits.
my %limit = (sources => 25, lines => 400, columns => 120, macro => 20);

# Libraries, and the only floors that may include their headers.
my @libraries = (
    ["HDF5",       qr{^(hdf5|H5\w*)\.h$},                   qr{^io/}],
    ["MPI",        qr{^mpi\.h$},                            qr{^mpi/}],
    ["CUDA",       qr{^(cuda\w*|cu\w+_runtime\w*|mma|cooperative_groups|driver_types)\.h$
                    | ^(cuda|cub|cute|cutlass|thrust|nv)/}x, qr{^kernels/}],
    ["BLAS",       qr{^(cblas|openblas\w*|blis|lapacke?)\.h$}, qr{^kernels/}],
    ["hwloc",      qr{^hwloc(\.h|/)},                       qr{^mpi/}],
    ["jansson",    qr{^jansson\w*\.h$},                     qr{^src/}],
    ["libdeflate", qr{^libdeflate\.h$},                     qr{^io/}],
);

my (@files, @includes, %text); # includes: [file, line, sort of quote, what]
for my $floor (sort keys %below) {
    for my $file (sort map { glob("$floor/$_*.{c,h,cu,cuh,def}") } "", "*/", "*/*/") {
        push @files, $file;
        open(my $in, "<", $file) or die "$file: $!";
        while (<$in>) {
            push @includes, [$file, $., $1, $2] if /^\s*#\s*include\s*(["<])([^">]+)/;
            $text{$file} .= $_;
        }
    }
}

my $tests = 0;
my $failed = 0;

# One test: no offender.
sub none {
    my ($name, @offenders) = @_;
    $tests++;
    $failed += @offenders > 0;
    print @offenders ? "not ok" : "ok", " $tests - $name\n";
    print "# $_\n" for @offenders;
}

sub show { my ($file, $line, undef, $what) = @{$_[0]}; return "$file:$line: includes $what" }
sub floor { return (split m{/}, $_[0])[0] }

# The room of a file; "." if it is in the floor's own folder.
sub room {
    my @parts = split m{/}, $_[0];
    return @parts > 2 ? $parts[1] : ".";
}

# The macros of a text that are longer than the limit: [name, lines].
sub long_macros {
    my ($text) = @_;
    my @long;
    while ($text =~ /^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)+)/mg) {
        my ($name, $lines) = ($1, 1 + ($2 =~ tr/\n//));
        push @long, [$name, $lines] if $lines > $limit{macro};
    }
    return @long;
}

# Circles of calls: sets of source files each of which uses functions of the others, itself or by way of them.
sub circles {
    my (%code, %definer, %uses, %reached, %done, @circles);
    for my $file (grep { /\.(c|cu)$/ } @_) {
        ($code{$file} = $text{$file}) =~ s{/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"}{}gs;
        my $definition = qr/^(?!static\b|typedef\b)[a-z][^\n;={}()]*\b(gm_\w+)\([^;{}]*\)\s*\{/m;
        $definer{$1}{$file} = 1 while $code{$file} =~ /$definition/g;
    }
    for my $file (keys %code) {
        for my $name ($code{$file} =~ /\b(gm_\w+)\b/g) {
            $uses{$file}{$_}{$name} = 1 for grep { $_ ne $file } keys %{$definer{$name} || {}};
        }
    }
    for my $file (keys %code) {
        my @next = keys %{$uses{$file}};
        while (defined(my $other = shift @next)) {
            push @next, keys %{$uses{$other}} unless $reached{$file}{$other}++;
        }
    }
    for my $file (grep { $reached{$_}{$_} } sort keys %code) {
        next if $done{$file};
        my @circle = grep { $reached{$file}{$_} && $reached{$_}{$file} } sort keys %code;
        my @calls;
        for my $from (@circle) {
            push @calls, map { "$from calls $_: " . join(", ", sort keys %{$uses{$from}{$_}}) }
                grep { $uses{$from}{$_} } @circle;
        }
        $done{$_} = 1 for @circle;
        push @circles, join("; ", @calls);
    }
    return @circles;
}

none("there are sources to look at", @files && @includes ? () : ("none below " . `pwd`));

for my $floor (sort keys %below) {
    my $allowed = join "|", @{$below{$floor}};
    none("$floor/ includes only {" . join(", ", sort @{$below{$floor}}) . "}",
        map { show($_) } grep { floor($_->[0]) eq $floor && $_->[2] eq '"' && $_->[3] ne "config.h"
            && $_->[3] !~ m{^($allowed)/\w} } @includes);
}

for my $floor (sort keys %inside) {
    for my $room (sort keys %{$inside{$floor}}) {
        my %allowed = map { $_ => 1 } $room, @{$inside{$floor}{$room}};
        my $where = $room eq "." ? "$floor/ itself" : "$floor/$room/";
        none("$where includes of $floor/ only {" . join(", ", sort keys %allowed) . "}",
            map { show($_) } grep { floor($_->[0]) eq $floor && room($_->[0]) eq $room
                && $_->[2] eq '"' && floor($_->[3]) eq $floor && !$allowed{room($_->[3])} } @includes);
    }
}

none("no include walks up", map { show($_) } grep { $_->[3] =~ m{\.\./} } @includes);

for my $library (@libraries) {
    my ($name, $header, $where) = @$library;
    none("$name is seen only where it belongs",
        map { show($_) } grep { $_->[3] =~ $header && $_->[0] !~ m{^tests/} && $_->[0] !~ $where } @includes);
}

{
    open(my $in, "<", "sources.mk") or die "sources.mk: $!";
    my %listed = map { $_ => 1 } "src/main.c", map { split } <$in>;
    open($in, "<", "tests/local.mk") or die "tests/local.mk: $!";
    $listed{$_} = 1 for map { split } <$in>;
    $listed{"kernels/device_cuda_none.c"} = 1; # kernels/local.mk: in the place of all sources of CUDA
    none("every source is in sources.mk, or of tests/ in tests/local.mk", grep { !$listed{$_} } @files);
}

{
    open(my $in, "<", "tests/local.mk") or die "tests/local.mk: $!";
    my ($text, %tests_of) = join("", <$in>);
    for my $list ($text =~ /^GM_TESTS\w* = \\\n((?:\t.*\n)+)/mg) {
        push @{$tests_of{s/\.\w+$//r}}, $_ for grep { $_ ne "\\" } split " ", $list;
    }
    none("no two tests share a name before the extension, and so a log",
        keys %tests_of ? () : "no tests", map { join(", ", @$_) } grep { @$_ > 1 } @tests_of{sort keys %tests_of});
}

my @sources = grep { !m{^tests/} } @files;
my %held;
m{^(.*)/([^/]+)} && $held{$1}{$2}++ for @sources;
none("no folder has more than $limit{sources} sources",
    map { "$_: " . keys %{$held{$_}} } grep { keys %{$held{$_}} > $limit{sources} } sort keys %held);
none("no source has more than $limit{lines} lines",
    map { my $lines = $text{$_} =~ tr/\n//; $lines > $limit{lines} ? "$_: $lines" : () } @sources);
my %script;
for my $file (grep { -f } glob("{tests,tests/*,tests/*/*,jobs,docs/scaling}/* .ci/run quickstart sources autogen.sh")) {
    next if exists $text{$file};
    open(my $in, "<", $file) or die "$file: $!";
    my $lines = join("", <$in>);
    $script{$file} = $lines if $lines =~ /^#!/ || $file =~ /\.(py|sh|mk|sbatch)$/;
}
none("no line of a source or a script has more than $limit{columns} columns",
    map { my ($file, $lines, $at) = ($_, $text{$_} // $script{$_}, 0);
          utf8::decode($lines);
          map { $at++; length > $limit{columns} ? "$file:$at" : () } split /\n/, $lines }
    @files, sort keys %script);
none("no macro has more than $limit{macro} lines",
    map { my $file = $_; map { "$file: $_->[0] has $_->[1]" } long_macros($text{$file}) } @files);
# Headers of loops (*_loops.h) have no guard, as they are included once for each type.
none("the guard of a header is its whole path",
    map { my $guard = "GM_" . uc(s{[/.]}{_}gr);
          $text{$_} =~ /^#ifndef $guard\n#define $guard\n/m ? () : "$_: not $guard" }
    grep { /\.(h|cuh)$/ && !/_loops\.h$/ } @files);
none("calls between source files form no circle", circles(@sources));

# The files, and the names in them, of the section "Where to change" of docs/design.md.
{
    my $read = sub { open(my $in, "<", $_[0]) or die "$_[0]: $!"; return join("", <$in>) };
    my ($rows) = $read->("docs/design.md") =~ /^## 7\..*?\n(.*?)^## 8\./ms or die "docs/design.md: no section 7";
    my $code = join("\n", $read->("jobs/gpumem-scaling"), values %text);
    my @words = $rows =~ /`([^`]+)`/g;
    none("docs/design.md names no file that is not there", grep { m{^\w+/} && !-e } @words);
    none("docs/design.md names no function that is not there", grep { /^\w+$/ && $code !~ /\b\Q$_\E\b/ } @words);
}

print "1..$tests\n";
exit($failed > 0);
